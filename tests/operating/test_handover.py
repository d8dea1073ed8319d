# SPDX-License-Identifier: Apache-2.0
"""One server takes the place of another while clients connect in a loop, and none of them is refused."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
from faults.conftest import target  # noqa: F401
from faults.support import eventually
from harness.exchange import ask
from harness.patience import PATIENCE_S
from harness.servers import free_port

# With its number in a shell, the socket becomes descriptor 3; the shell's process becomes the server.
WITH_SOCKETS = 'exec env LISTEN_FDS=1 LISTEN_PID=$$ "$@" 3<&$SOCKET'


class Processes:
    def __init__(self, program: str, folder) -> None:
        self.program = program
        self.folder = folder
        self.all: list[subprocess.Popen] = []

    def start(self, *options: str, inherited: socket.socket | None = None, env=None) -> subprocess.Popen:
        """Returns when the server says that it is ready."""
        ready_path = str(self.folder / f"ready{len(self.all)}")
        command = [self.program, "-u", "root", "-t", "2", *options]
        variables = {"PATH": "/usr/bin:/bin", "NOTIFY_SOCKET": ready_path, **(env or {})}
        fds = ()
        if inherited is not None:
            fds = (inherited.fileno(),)
            variables["SOCKET"] = str(inherited.fileno())
            command = ["/bin/bash", "-c", WITH_SOCKETS, "bash", *command]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(ready_path)
            ready.settimeout(PATIENCE_S)
            log = open(self.folder / f"log{len(self.all)}", "wb")
            with log:
                self.all.append(
                    subprocess.Popen(command, stdout=log, stderr=log, env=variables, pass_fds=fds)
                )
            assert ready.recv(64) == b"READY=1"
        return self.all[-1]

    def stop(self) -> list[int]:
        for process in self.all:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        return [process.wait(PATIENCE_S) for process in self.all]


@pytest.fixture
def processes(target, tmp_path):  # noqa: F811
    made = Processes(target.path, tmp_path)
    yield made
    assert made.stop() == [0] * len(made.all)


def pid_of(address) -> int | None:
    """Of the server that a new connection reaches. Raises OSError if it is refused.

    None: the server has closed it, which the one that ends does with clients that are silent for a second.
    """
    with socket.create_connection(address, PATIENCE_S) as sock:
        try:
            reply = ask(sock, b"stats\r\n", b"END\r\n").decode()
        except ConnectionError:
            return None
    return int(reply.split("STAT pid ")[1].split()[0])


@contextmanager
def clients_in_a_loop(address, count: int = 3):
    """Each connects, asks and closes, again and again. Gives the process ids that answered; raises what failed."""
    stop = threading.Event()
    answered: list[int] = []
    failures: list[str] = []
    closed: list[None] = []

    def run() -> None:
        while not stop.is_set():
            try:
                pid = pid_of(address)
                closed.append(None) if pid is None else answered.append(pid)
            except OSError as failure:
                failures.append(repr(failure))
                return

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures
    assert len(closed) <= 3 * count, "closed without an answer"


def test_two_servers_share_a_port_while_one_follows_the_other(processes):
    address = ("127.0.0.1", free_port())
    options = ("-l", address[0], "-p", str(address[1]), "-o", "share_ports")
    old = processes.start(*options)
    with clients_in_a_loop(address) as answered:
        for _ in range(3):
            new = processes.start(*options)
            assert eventually(lambda pid=old.pid: pid in answered)
            old.send_signal(signal.SIGUSR1)
            # While the old one still accepts what had begun, all new connections are the new one's.
            assert old.wait(PATIENCE_S) == 0
            seen = len(answered)
            assert eventually(lambda start=seen: len(answered) > start + 20)
            assert set(answered[seen + 10 :]) == {new.pid}
            old = new


def test_without_the_word_a_port_has_one_server(processes):
    port = str(free_port())
    processes.start("-l", "127.0.0.1", "-p", port)
    second = subprocess.run(
        [processes.program, "-u", "root", "-l", "127.0.0.1", "-p", port, "-o", "share_ports"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert second.returncode == 71
    assert "Address already in use" in second.stderr


def test_a_socket_that_outlives_the_server(processes, tmp_path):
    """As systemd's socket units: clients wait while no server runs. With -e even the items stay."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        items = str(tmp_path / "items")
        first = processes.start("-e", items, inherited=listening)
        with socket.create_connection(address) as sock:
            assert ask(sock, b"set key 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
        with clients_in_a_loop(address) as answered:
            assert eventually(lambda: first.pid in answered)
            first.send_signal(signal.SIGUSR1)
            assert first.wait(PATIENCE_S) == 0
            time.sleep(0.2)  # clients wait now
            second = processes.start("-e", items, inherited=listening)
            assert eventually(lambda: second.pid in answered)
        with socket.create_connection(address) as sock:
            assert ask(sock, b"get key\r\n", b"END\r\n") == b"VALUE key 0 5\r\nvalue\r\nEND\r\n"


def test_unix_and_udp_sockets_are_taken_too(processes, tmp_path):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen()
        process = processes.start(inherited=listening)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.connect(path)
            assert ask(sock, b"mn\r\n") == b"MN\r\n"
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        assert (tmp_path / "socket").exists()  # it is not the server's
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        processes.start(inherited=bound)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(PATIENCE_S)
            for number in range(20):
                sock.sendto(b"\0%c\0\0\0\1\0\0mn\r\n" % number, bound.getsockname())
                assert sock.recv(100)[8:] == b"MN\r\n"


def test_another_process_sockets_are_left_alone(processes):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = free_port()
        processes.start("-l", "127.0.0.1", "-p", str(port), env={"LISTEN_FDS": "1", "LISTEN_PID": "1"})
        with socket.create_connection(("127.0.0.1", port)) as sock:
            assert ask(sock, b"mn\r\n") == b"MN\r\n"
        del listening


def test_a_socket_that_cannot_be_served_is_refused(processes, tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as unbound:
        done = subprocess.run(
            ["/bin/bash", "-c", WITH_SOCKETS, "bash", processes.program, "-u", "root"],
            env={"PATH": "/usr/bin:/bin", "SOCKET": str(unbound.fileno())},
            pass_fds=(unbound.fileno(),),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 71
    assert "LISTEN_FDS: descriptor 3 cannot be served" in done.stderr
