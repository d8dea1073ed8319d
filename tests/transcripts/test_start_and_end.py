# SPDX-License-Identifier: Apache-2.0
"""What warpcached finds at its start and leaves at its end: socket files, ports, pid files."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.servers import free_port, is_sanitized

EXIT_REFUSED = 71


class Process:
    """One warpcached with exactly these options; its standard error goes to a file."""

    def __init__(self, path: str, log: Path, options: tuple[str, ...], **keywords) -> None:
        user = ["-u", "root"] if os.geteuid() == 0 and "-u" not in options else []
        self.log_path = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(
                [path, *user, "-t", "1", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=out,
                **keywords,
            )

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def status(self) -> int:
        """The exit status of a process that ends by itself."""
        return self.process.wait(PATIENCE_S)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.status()


@pytest.fixture
def begin(tmp_path):
    target = require_target("warpcached")
    processes: list[Process] = []

    def starter(*options: str, **keywords) -> Process:
        log = tmp_path / f"log-{len(processes)}"
        processes.append(Process(target.path, log, options, **keywords))
        return processes[-1]

    yield starter
    for process in processes:
        if process.process.poll() is None:
            process.process.kill()
        process.process.wait()


def wait_until(condition, process: Process) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.process.poll() is None, process.log()
        assert time.monotonic() < deadline, process.log()
        time.sleep(0.01)


def answers(address, family: int = socket.AF_INET) -> bool:
    with socket.socket(family) as sock:
        sock.settimeout(PATIENCE_S)
        try:
            sock.connect(address)
            sock.sendall(b"mn\r\n")
            return sock.recv(100) in (b"MN\r\n", b"CLIENT_ERROR unauthenticated\r\n")  # with -Y
        except OSError:
            return False


def answers_unix(path: Path) -> bool:
    return answers(str(path), socket.AF_UNIX)


def begin_unix(begin, path: Path, *options: str) -> Process:
    process = begin("-s", str(path), *options)
    wait_until(lambda: answers_unix(path), process)
    return process


def limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def test_a_socket_in_use_is_refused(begin, tmp_path):
    """A second server on a path ends with one sentence, and the first goes on."""
    path = tmp_path / "s"
    first = begin_unix(begin, path)
    second = begin("-s", str(path))
    assert second.status() == EXIT_REFUSED
    assert f"the Unix socket {path}: another server listens there" in second.log()
    assert answers_unix(path)
    assert first.end() == 0
    assert not path.exists()


def test_a_socket_file_of_another_server_stays(begin, tmp_path):
    """A server whose file was deleted does not delete the file of the one that came after it."""
    path = tmp_path / "s"
    first = begin_unix(begin, path)
    path.unlink()
    second = begin_unix(begin, path)
    assert first.end() == 0
    assert answers_unix(path)
    assert second.end() == 0
    assert [p.name for p in tmp_path.iterdir() if p.is_socket()] == []


def skip_where_sanitized() -> None:
    if is_sanitized(require_target("warpcached").path):
        pytest.skip("the sanitizers end a program that is refused memory")


def test_a_refused_start_leaves_no_socket(begin, tmp_path):
    """What fails after the socket is bound removes it, and what was there before stays."""
    skip_where_sanitized()
    path = tmp_path / "s"
    process = begin("-s", str(path), "-m", "100000", preexec_fn=lambda: limit_memory(1 << 30))
    assert process.status() == EXIT_REFUSED, process.log()
    assert [p.name for p in tmp_path.iterdir() if p.is_socket()] == []


def test_a_socket_file_answers_when_it_appears(begin, tmp_path):
    """Whoever waits for the file can connect at once, every time."""
    for attempt in range(5):
        path = tmp_path / f"s{attempt}"
        process = begin("-s", str(path))
        deadline = time.monotonic() + PATIENCE_S
        while not os.path.lexists(path):
            assert time.monotonic() < deadline, process.log()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(path))
        assert process.end() == 0


def test_a_path_that_is_no_socket_is_refused(begin, tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    process = begin("-s", str(path))
    assert process.status() == EXIT_REFUSED
    assert "there is a file of that name" in process.log()
    assert path.read_text() == "precious"


def test_connections_name_the_socket_by_its_path(begin, tmp_path):
    path = tmp_path / "s"
    begin_unix(begin, path)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(b"stats conns\r\nmn\r\n")
        text = b""
        while not text.endswith(b"MN\r\n"):
            text += sock.recv(65536)
    assert text.count(f":addr unix:{path}\r\n".encode()) == 1
    assert text.count(f":listen_addr unix:{path}\r\n".encode()) >= 1
    assert text.count(b"unix:") == text.count(f"unix:{path}\r\n".encode())


def begin_port(begin, port: int, host: str, *options: str) -> Process:
    process = begin("-p", str(port), *options)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wait_until(lambda: answers((host, port), family), process)
    return process


def shared_port() -> int:
    """A port that is free in both families."""
    while True:
        port = free_port(socket.AF_INET6)
        with socket.socket() as sock:
            try:
                sock.bind(("", port))
                return port
            except OSError:
                continue


@pytest.mark.parametrize(("taken", "free"), [("::1", "127.0.0.1"), ("127.0.0.1", "::1")])
def test_a_family_that_is_taken_is_left_out(begin, taken, free):
    """Every interface of both families, one of which another server has: the other is served."""
    port = shared_port()
    first = begin_port(begin, port, taken, "-l", taken)
    second = begin_port(begin, port, free)
    family = "IPv6" if ":" in taken else "IPv4"
    assert f"cannot listen on *:{port} ({family}): Address already in use" in second.log()
    assert first.end() == 0
    assert second.end() == 0


def test_a_port_that_is_taken_is_refused(begin):
    port = shared_port()
    begin_port(begin, port, "127.0.0.1")
    for options in (("-p", str(port)), ("-p", str(port), "-l", "127.0.0.1,127.0.0.2")):
        process = begin(*options)
        assert process.status() == EXIT_REFUSED
        assert "Address already in use" in process.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_the_end_needs_nothing_of_the_system(begin, number):
    """A server to which the system gives neither memory nor a thread any more ends with status 0."""
    skip_where_sanitized()
    if "SIMT_WARPCACHED" in os.environ:
        pytest.skip("the simulated GPU takes a thread of the host for each block")
    process = begin_port(begin, shared_port(), "127.0.0.1", "-l", "127.0.0.1")
    resource.prlimit(process.process.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
    assert process.end(number) == 0, process.log()


def dumpable(pid: int) -> bool:
    """The files of a process that may not dump core belong to root."""
    return os.stat(f"/proc/{pid}/environ").st_uid == os.stat(f"/proc/{pid}").st_uid != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_cores_are_dumped_as_another_user(begin):
    """-r with -u: the kernel switches core files off with the change of the user."""
    options = ("-l", "127.0.0.1", "-u", "nobody")
    with_r = begin_port(begin, shared_port(), "127.0.0.1", "-r", *options)
    without = begin_port(begin, shared_port(), "127.0.0.1", *options)
    assert dumpable(with_r.process.pid)
    assert not dumpable(without.process.pid)


def test_a_pid_file_that_cannot_be_written_is_told(begin, tmp_path):
    """The server says so and serves, as memcached does."""
    port = shared_port()
    path = tmp_path / "none" / "pid"
    process = begin_port(begin, port, "127.0.0.1", "-l", "127.0.0.1", "-P", str(path))
    assert f"-P: the file {path} cannot be written: No such file" in process.log()
    assert process.end() == 0


def test_a_pid_file_follows_no_link(begin, tmp_path):
    """Links that somebody has prepared keep what they point at; only our file goes at the end."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    path = tmp_path / "pid"
    for name in ("pid", "pid.tmp"):
        (tmp_path / name).symlink_to(precious)
    process = begin_port(begin, shared_port(), "127.0.0.1", "-l", "127.0.0.1", "-P", str(path))
    assert int(path.read_text()) == process.process.pid
    assert not path.is_symlink()
    assert precious.read_text() == "precious"
    assert process.end() == 0
    assert not path.exists()
    assert precious.read_text() == "precious"


def test_a_password_file_that_is_a_fifo_stops_nothing(begin, tmp_path):
    """SIGHUP reads the file again; a FIFO at its place is refused, and signals go on to be read."""
    path = tmp_path / "users"
    path.write_text("user:secret\n")
    process = begin_port(begin, shared_port(), "127.0.0.1", "-l", "127.0.0.1", "-Y", str(path))
    path.unlink()
    os.mkfifo(path)
    process.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "is not a regular file. The old passwords stay" in process.log(), process)
    assert process.end() == 0


@pytest.mark.not_on_gpu(reason="it is about a machine without one")
@pytest.mark.parametrize(
    ("driver", "sentence"),
    [
        ("0", "there is no NVIDIA driver, and so no GPU: install one"),
        ("12020", "the NVIDIA driver is for CUDA 12.2 at most, and this server for 13.0"),
        ("13000", "the NVIDIA driver finds no GPU: nvidia-smi must list one"),
    ],
)
def test_without_a_gpu_the_start_says_what_to_do(begin, driver, sentence):
    """In a build for the simulated GPU, whose driver and number of GPUs the environment says."""
    env = {**os.environ, "SIMT_DRIVER": driver, "SIMT_GPU": "0"}
    process = begin("--engine=cuda", "-p", str(shared_port()), "-l", "127.0.0.1", env=env)
    assert process.status() == EXIT_REFUSED
    if "without CUDA" in process.log():
        pytest.skip("built without CUDA")
    assert sentence in process.log()


def low_limit(size: int):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (size, size))


def test_too_few_descriptors_are_named_with_what_helps(begin):
    """More than the kernel gives to anybody."""
    most = int(Path("/proc/sys/fs/nr_open").read_text())
    process = begin("-c", str(most), "-p", str(shared_port()), "-l", "127.0.0.1")
    assert process.status() == EXIT_REFUSED
    assert f"-c {most} needs {most + 256} open files" in process.log()
    assert f"the system gives a process {most} at most (sysctl fs.nr_open)" in process.log()


def may_raise_limits() -> bool:
    """CAP_SYS_RESOURCE, which root lacks in many containers."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if "CapEff" in x)
    return bool(int(line.split()[1], 16) >> 24 & 1)


def test_a_low_limit_on_descriptors(begin):
    """Who may raise it does; others are told what helps them."""
    options = ("-l", "127.0.0.1", "-c", "1000")
    if may_raise_limits():
        begin_port(begin, shared_port(), "127.0.0.1", *options, preexec_fn=low_limit(100))
        return
    process = begin("-p", str(shared_port()), *options, preexec_fn=low_limit(100))
    assert process.status() == EXIT_REFUSED
    assert "-c 1000 needs 1256 open files, but the limit is 100" in process.log()
    helps = "CAP_SYS_RESOURCE is missing" if os.geteuid() == 0 else "start as root"
    assert helps in process.log()


def talk(port: int, *commands: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.sendall(b"".join(commands) + b"quit\r\n")
        text = b""
        while data := sock.recv(65536):
            text += data
    return text


def protocol_lines(process: Process) -> list[str]:
    return [line for line in process.log().splitlines() if line[0] in "<>"]


def test_commands_are_logged_as_memcached_logs_them(begin):
    """-vv: what listens, who comes, what is asked and answered. Programs wait for the first."""
    port = shared_port()
    process = begin("-vv", "-p", str(port), "-l", "127.0.0.1", "-U", str(port))
    wait_until(lambda: "server listening (udp)" in process.log(), process)
    lines = protocol_lines(process)
    assert [line.split(" ", 1)[1] for line in lines] == [
        "server listening (auto-negotiate)",
        "server listening (udp)",
    ]
    talk(port, b"set foo 0 0 6\r\nsecret\r\n", b"get foo bar\r\n", b"bogus\x01\r\n")
    wait_until(lambda: "connection closed." in process.log(), process)
    lines = protocol_lines(process)[2:]
    fd = lines[0][1:].split(" ")[0]
    assert lines == [
        f"<{fd} new auto-negotiating client connection",
        f"<{fd} set foo 0 0 6",
        f"<{fd} get foo bar",
        f"<{fd} bogus\\x01",
        f"<{fd} quit",
        f">{fd} STORED",
        f">{fd} sending key foo",
        f">{fd} END",
        f">{fd} ERROR",
        f"<{fd} connection closed.",
    ]
    assert process.end() == 0


def test_the_log_of_commands_is_switched_at_run_time(begin):
    port = shared_port()
    process = begin_port(begin, port, "127.0.0.1", "-l", "127.0.0.1", "-v")
    talk(port, b"get a\r\n")
    assert protocol_lines(process) == []
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.sendall(b"verbosity 2\r\n")
        assert sock.recv(100) == b"OK\r\n"
        talk(port, b"get b\r\n")
        sock.sendall(b"verbosity 0\r\n")
        assert sock.recv(100) == b"OK\r\n"
    talk(port, b"get c\r\n")
    wait_until(lambda: "get b" in process.log(), process)
    assert not any("get a" in line or "get c" in line for line in protocol_lines(process))


def test_passwords_are_not_logged(begin, tmp_path):
    """Neither where they stand nor where a wrong length makes a command of them."""
    path = tmp_path / "users"
    path.write_text("user:secret\n")
    port = shared_port()
    process = begin_port(begin, port, "127.0.0.1", "-l", "127.0.0.1", "-Y", str(path), "-vv")
    talk(port, b"set a 0 0 11\r\nuser secret\r\n", b"get afterwards\r\n")
    talk(port, b"set a 0 0 5\r\nuser secret\r\nsecret\r\n")
    talk(port, b"secret\r\n")
    wait_until(lambda: process.log().count("connection closed.") >= 4, process)
    assert "secret" not in process.log()
    assert "STORED" in process.log()
