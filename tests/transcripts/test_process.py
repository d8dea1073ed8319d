# SPDX-License-Identifier: Apache-2.0
"""What a server does as a process: limits on connections, ports, signals, refused options."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import time

import pytest
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.servers import Server, free_port, start_server



def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--target")
        names = ("warpcached", "memcached") if chosen == "both" else (chosen,)
        metafunc.parametrize("target", names, indirect=True)


@pytest.fixture
def target(request):
    return require_target(request.param)


@pytest.fixture
def start(target):
    servers: list[Server] = []

    def starter(*options: str, **keywords) -> Server:
        servers.append(start_server(target, options, **keywords))
        return servers[-1]

    yield starter
    for server in servers:
        server.stop()


def ask(sock: socket.socket, line: bytes) -> bytes:
    sock.sendall(line + b"\r\n")
    return sock.recv(65536)


def works(server: Server) -> bool:
    with server.connect() as sock:
        return ask(sock, b"get a") == b"END\r\n"


def test_connection_limit(start):
    """The connection above -c is told so and closed; a freed place can be used again."""
    server = start("-c", "24", "-t", "1", "-o", "maxconns_fast")
    accepted: list[socket.socket] = []
    refused = None
    try:
        for _ in range(30):
            sock = server.connect()
            sock.sendall(b"get a\r\n")
            try:
                reply = sock.recv(100)
            except ConnectionResetError:  # The refusal was there, and was lost to the reset.
                reply = b"reset"
            if reply != b"END\r\n":
                refused = reply
                sock.close()
                break
            accepted.append(sock)
        assert refused in (b"ERROR Too many open connections\r\n", b"reset")
        assert 10 <= len(accepted) <= 24
        assert all(ask(sock, b"get a") == b"END\r\n" for sock in accepted)

        # Without a request in the way the text arrives whole.
        sock = server.connect()
        text = b""
        while data := sock.recv(100):
            text += data
        assert text == b"ERROR Too many open connections\r\n"
        sock.close()

        for sock in accepted[-2:]:
            sock.close()
        del accepted[-2:]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            sock = server.connect()
            try:
                reply = ask(sock, b"get a")
            except OSError:
                reply = b""
            if reply == b"END\r\n":
                accepted.append(sock)
                break
            sock.close()
            assert time.monotonic() < deadline, "a freed place was not given again"
            time.sleep(0.05)
        assert b"STAT rejected_connections " in ask(accepted[0], b"stats")
    finally:
        for sock in accepted:
            sock.close()


def test_port_file(start, tmp_path):
    """MEMCACHED_PORT_FILENAME names a file that lists the bound ports."""
    path = tmp_path / "ports"
    server = start(env={"MEMCACHED_PORT_FILENAME": str(path)}, udp=True)
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    lines = path.read_text().splitlines()
    assert f"TCP INET: {server.port}" in lines
    assert f"UDP INET: {server.port}" in lines


def user_option() -> list[str]:
    return ["-u", "root"] if os.geteuid() == 0 else []


def wait_until(condition, what: str, seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def answers(family: int, address) -> bool:
    with socket.socket(family) as sock:
        sock.settimeout(PATIENCE_S)
        try:
            sock.connect(address)
            return ask(sock, b"get a") == b"END\r\n"
        except OSError:
            return False


@pytest.fixture
def launch(target):
    """Starts the program with exactly these options; ends it by its pid afterwards."""
    processes: list[subprocess.Popen] = []

    def launcher(*options: str, env: dict[str, str] | None = None) -> subprocess.Popen:
        processes.append(
            subprocess.Popen(
                [target.path, *user_option(), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
            )
        )
        return processes[-1]

    yield launcher
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_free_port_chosen(launch, tmp_path):
    """-p -1 takes any free port and tells it in the port file."""
    path = tmp_path / "ports"
    launch("-p", "-1", "-l", "127.0.0.1", env={"MEMCACHED_PORT_FILENAME": str(path)})
    wait_until(lambda: path.exists() and path.read_text().strip(), "no port file")
    port = int(path.read_text().split()[-1])
    assert answers(socket.AF_INET, ("127.0.0.1", port))


def test_no_port_at_all(launch, tmp_path):
    """-p 0: the server runs, and the port file is empty."""
    path = tmp_path / "ports"
    process = launch("-p", "0", env={"MEMCACHED_PORT_FILENAME": str(path)})
    wait_until(path.exists, "no port file")
    assert path.read_text() == ""
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_end_cleanly(start, number):
    server = start("-t", "2")
    with server.connect() as sock:
        assert ask(sock, b"get a") == b"END\r\n"
        os.kill(server.pid, number)
        assert server.wait_exit() == 0


def test_daemon_and_pid_file(launch, tmp_path):
    """-d goes to the background; -P writes the pid, and takes the file away at the end."""
    path = tmp_path / "pid"
    port = free_port()
    parent = launch("-d", "-P", str(path), "-l", "127.0.0.1", "-p", str(port))
    assert parent.wait(PATIENCE_S) == 0
    wait_until(lambda: path.exists() and path.read_text().strip(), "no pid file")
    pid = int(path.read_text())
    try:
        wait_until(lambda: answers(socket.AF_INET, ("127.0.0.1", port)), "no answer")
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not path.exists(), "the pid file stayed")


def test_unix_socket_mask(start):
    """-a gives the socket's mode, in octal."""
    server = start("-a", "750", unix=True)
    assert stat.S_IMODE(os.stat(server.socket_path).st_mode) == 0o750
    assert works(server)


def test_unix_socket_left_behind(launch, tmp_path):
    """A socket file that a dead server left is no obstacle."""
    path = tmp_path / "left.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    launch("-s", str(path))
    wait_until(lambda: answers(socket.AF_UNIX, str(path)), "no answer")


def test_several_listeners(start):
    """-l may be given twice, and may hold a list and ports."""
    second = free_port()
    server = start("-l", f"127.0.0.2,127.0.0.3:{second}")
    assert works(server)
    for host, port in (("127.0.0.2", server.port), ("127.0.0.3", second)):
        with socket.create_connection((host, port), 60) as sock:
            assert ask(sock, b"get a") == b"END\r\n"


def test_an_address_without_administration(start, target):
    """noadmin: before an address keeps its clients, over TCP and UDP, from changing the server."""
    if target.name != "warpcached":
        pytest.skip("memcached has no such prefix")
    closed = free_port()
    server = start("-l", f"127.0.0.2,noadmin:127.0.0.3:{closed}", "-U", str(closed))
    refusal = b"CLIENT_ERROR not allowed here\r\n"
    for host, port, expected in (("127.0.0.2", server.port, b"OK\r\n"), ("127.0.0.3", closed, refusal)):
        with socket.create_connection((host, port), 60) as sock:
            for command in (b"flush_all", b"cache_memlimit 32", b"verbosity 0", b"lru mode flat"):
                assert ask(sock, command) == expected, command
            assert ask(sock, b"get a") == b"END\r\n"
    for host, expected in (("127.0.0.2", b"OK\r\n"), ("127.0.0.3", refusal)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect((host, closed))
            sock.settimeout(PATIENCE_S)
            sock.send(b"\0\1\0\0\0\1\0\0flush_all\r\n")
            assert sock.recv(2000)[8:] == expected


def test_ipv6(start):
    server = start(ipv6=True)
    assert works(server)


def test_udp_is_off_by_default(start):
    server = start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((server.host, server.port))
        sock.settimeout(0.2)
        sock.send(b"\0\1\0\0\0\1\0\0get a\r\n")
        with pytest.raises(OSError):  # Refused, or no answer at all.
            sock.recv(2000)


def run_to_end(target, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [target.path, *options], capture_output=True, text=True, timeout=PATIENCE_S
    )


REFUSED = [
    ("-I", "512"),
    ("-I", "2000m"),
    ("-t", "0"),
    ("-c", "0"),
    ("-f", "1"),
    ("-n", "0"),
    ("-p", "70000"),
    ("-B", "morse"),
    ("-R", "0"),
    ("-Y", "/nonexistent/users"),
    ("-o", "nosuchword"),
    ("-o", "hashpower=100"),
    ("--nosuchoption",),
]
# memcached takes these, and does something else than was meant.
REFUSED_HERE = [
    ("-m", "-5"),
    ("-m", "many"),
    ("-b", "-1"),
    ("-p", "notaport"),
    ("-t", "4x"),
    ("-c", "10 connections"),
]


def check_refused(target, options) -> None:
    try:
        result = run_to_end(
            target, "-l", "127.0.0.1", "-p", str(free_port()), *user_option(), *options
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"{options} was accepted")
    assert result.returncode != 0
    assert result.returncode > 0, "ended by a signal"
    assert result.stderr.strip(), "no word on standard error"


@pytest.mark.parametrize("options", REFUSED, ids=" ".join)
def test_wrong_options_are_refused(target, options):
    """A wrong value ends the start with a sentence, not with a server."""
    check_refused(target, options)


@pytest.mark.parametrize("options", REFUSED_HERE, ids=" ".join)
def test_wrong_options_are_refused_here(target, options):
    if target.name != "warpcached":
        pytest.skip("memcached accepts it")
    check_refused(target, options)


ACCEPTED_WORDS = (
    "maxconns_fast no_maxconns_fast hashpower=18 idle_timeout=100 modern no_modern track_sizes "
    "hash_algorithm=murmur3 no_hashexpand tail_repair_time=60 lru_crawler no_lru_crawler "
    "lru_crawler_sleep=100 lru_crawler_tocrawl=0 lru_maintainer no_lru_maintainer hot_lru_pct=20 "
    "warm_lru_pct=40 hot_max_factor=0.2 warm_max_factor=2.0 temporary_ttl=61 slab_reassign "
    "no_slab_reassign slab_automove=1 slab_automove_ratio=0.8 slab_automove_window=30 "
    "slab_chunk_max=512 watcher_logbuf_size=256 worker_logbuf_size=64 read_buf_mem_limit=16"
).split()
ACCEPTED = [
    ("--memory-limit=80", "--conn-limit=100", "--threads=2", "--max-item-size=2m"),
    ("--disable-evictions", "--disable-cas", "--disable-flush-all", "--enable-shutdown"),
    ("--listen-backlog=64", "--max-reqs-per-event=5", "--protocol=ascii", "--verbose"),
    ("--slab-growth-factor=1.3", "--slab-min-size=64", "-D", "!", "--extended", "modern"),
    ("-vv", "-m", "8", "-n", "32", "-f", "2", "-R", "100", "-b", "10", "-c", "1000"),
]


@pytest.mark.parametrize("options", ACCEPTED, ids=" ".join)
def test_options_are_taken(start, options):
    assert works(start(*options))


@pytest.mark.long
def test_extended_words_are_taken(start):
    """Words that tune memcached are accepted, whether they mean something here or not."""
    for word in ACCEPTED_WORDS:
        server = start("-o", word)
        assert works(server), word
        server.stop()


def test_version_and_help(target):
    for option in ("-V", "--version"):
        result = run_to_end(target, option)
        assert result.returncode == 0
        assert target.name in result.stdout
    for option in ("-h", "--help"):
        result = run_to_end(target, option)
        assert result.returncode == 0
        words = "-p -U -s -a -l -d -u -m -M -c -t -I -b -R -C -F -A -B -P -v -f -n -k -L -D -Y"
        for word in words.split():
            assert f"\n{word}" in result.stdout or f"\n    {word}" in result.stdout, word
        assert "idle_timeout" in result.stdout
