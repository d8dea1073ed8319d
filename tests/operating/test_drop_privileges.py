# SPDX-License-Identifier: Apache-2.0
"""-o drop_privileges: the kernel refuses what a server does not need, and everything that one does still works."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faults.conftest import target  # noqa: F401
from faults.support import eventually, fetch, store
from harness.exchange import ask, ask_stats, receive_until
from harness.fixtures import on_gpu
from harness.frame_servers import PORTS
from harness.patience import PATIENCE_S
from harness.refused_calls import refused_calls
from harness.servers import start_server
from harness.ucx import Bridge, UcxServer
from packets import frames

FILTERED = "2"


@pytest.fixture
def started(target):  # noqa: F811
    servers = []

    def start(*options: str, **how):
        servers.append(start_server(target, ("-t", "2", *options), **how))
        return servers[-1]

    yield start
    assert [server.stop() for server in servers] == [0] * len(servers)


def seccomp_modes(pid: int) -> set[str]:
    """Of each thread."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return {re.search(r"^Seccomp:\s*(\d)$", text, re.MULTILINE)[1] for text in texts}


def filtered(server) -> bool:
    return seccomp_modes(server.pid) == {FILTERED}


def test_all_threads_are_filtered(started):
    assert eventually(lambda: filtered(started("-o", "drop_privileges")))


def test_without_the_word_there_is_no_filter(started):
    for options in ((), ("-o", "drop_privileges,no_drop_privileges")):
        server = started(*options)
        with server.connect() as sock:
            store(sock, b"key", b"value")
        assert FILTERED not in seccomp_modes(server.pid) - seccomp_modes(1)


def test_a_filtered_server_does_all_its_work(started, tmp_path):
    """Large values, UDP, watchers (a thread of their own), dumps, a new memory limit, the passwords read again."""
    server = started("-o", "drop_privileges,idle_timeout=1000", "-m", "64", udp=True)
    assert eventually(lambda: filtered(server))
    with server.connect() as sock, server.connect() as watcher:
        store(sock, b"large", bytes(1 << 19))
        assert fetch(sock, b"large") == bytes(1 << 19)
        assert ask(watcher, b"watch mutations\r\n") == b"OK\r\n"
        store(sock, b"small", b"x")
        assert b"key=small" in receive_until(watcher, b"\n")
        assert b"key=small" in ask(sock, b"lru_crawler metadump all\r\n", b"END\r\n")
        for megabytes in (128, 16):
            assert ask(sock, b"cache_memlimit %d\r\n" % megabytes) == b"OK\r\n"
        assert ask_stats(sock)["curr_items"] == "2"
    with server.connect_udp() as udp:
        udp.settimeout(PATIENCE_S)
        udp.send(b"\0\1\0\0\0\1\0\0get small\r\n")
        assert udp.recv(2048)[8:] == b"VALUE small 0 1\r\nx\r\nEND\r\n"


def test_passwords_are_read_again(started, tmp_path):
    passwords = tmp_path / "passwords"
    passwords.write_text("ann:one\n")
    server = started("-o", "drop_privileges", "-Y", str(passwords))

    def logs_in(word: bytes) -> bool:
        with server.connect() as sock:
            text = b"ann " + word
            return ask(sock, b"set u 0 0 %d\r\n%s\r\n" % (len(text), text)) == b"STORED\r\n"

    assert logs_in(b"one")
    passwords.write_text("ann:two\n")
    server.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: logs_in(b"two"))


def test_a_filtered_server_keeps_its_items(target, tmp_path):  # noqa: F811
    options = ("-e", str(tmp_path / "items"), "-o", "drop_privileges", "-P", str(tmp_path / "pid"))
    for has in (None, b"value"):
        server = start_server(target, options)
        try:
            with server.connect() as sock:
                assert fetch(sock, b"key") == has
                store(sock, b"key", b"value")
            server.process.send_signal(signal.SIGUSR1)
            assert server.wait_exit() == 0, server.log()
            assert not (tmp_path / "pid").exists()
        finally:
            server.stop()


def links(network: int) -> str:
    look = ["nsenter", f"--net=/proc/self/fd/{network}", "ip", "link", "show"]
    return subprocess.run(look, capture_output=True, text=True, timeout=PATIENCE_S, pass_fds=[network], check=True).stdout


@pytest.mark.parametrize("port", ["pcap", "tap", "dpdk", "memif", "af_xdp"])
def test_ports_of_frames(target, tmp_path, port):  # noqa: F811
    server = PORTS[port](target, tmp_path, ("-m", "64", "-o", "drop_privileges"))
    try:
        assert eventually(lambda: filtered(server.server))
        for number, (text, reply) in enumerate(((b"set a 0 0 1\r\nx\r\n", b"STORED\r\n"), (b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n"))):
            server.send([frames.request(text, frames.PLAIN, number)])
            assert server.replies(1) == frames.replies(reply, frames.PLAIN, number)
        assert fetch(server.sock, b"a") == b"x"
        network = os.open(f"/proc/{server.server.pid}/ns/net", os.O_RDONLY)
        assert "xdp" in links(network) or port != "af_xdp"
    finally:
        status = server.stop()
    assert status == 0
    assert "xdp" not in links(network)  # the program has left its interface
    os.close(network)


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_active_messages(transports):
    """Clients that come after the filter, large values both ways, and one that is killed."""
    with UcxServer("-m", "64", "-o", "drop_privileges", transports=transports) as served:
        assert eventually(lambda: filtered(served.sockets))
        for _ in range(2):
            with served.server.connect() as sock:
                for size in (10, 20_000, 1_000_000):
                    value = random.randbytes(size)
                    store(sock, b"key%d" % size, value)
                    assert fetch(sock, b"key%d" % size) == value
            served.bridge.kill()
            served.bridge = Bridge(served.ucx_port, transports)
            served.server = served.reached_by(served.bridge)


def work_on_gpu(server) -> None:
    """Gets, sets and values of all sizes, a watcher, a dump, a flush, another memory limit, a pause, and a stop."""
    with server.connect() as sock, server.connect() as watcher:
        assert ask(watcher, b"watch mutations\r\n") == b"OK\r\n"
        sizes = (1, 4000, 70_000, 900_000)
        for size in sizes:
            store(sock, b"key%d" % size, bytes(size))
            assert f"key=key{size} ".encode() in receive_until(watcher, b"\n")
        for size in sizes:
            assert fetch(sock, b"key%d" % size) == bytes(size)
        many = b"".join(b"set many%d 0 0 100 noreply\r\n%b\r\n" % (i, bytes(100)) for i in range(2000))
        sock.sendall(many + b"mn\r\n")
        receive_until(sock, b"MN\r\n")
        dump = ask(sock, b"lru_crawler metadump all\r\n", b"END\r\n")
        assert dump.count(b"key=many") == 2000
        assert ask_stats(sock)["curr_items"] == str(2000 + len(sizes))
        assert ask(sock, b"cache_memlimit 32\r\n") == b"OK\r\n"
        time.sleep(3)  # a persistent kernel ends meanwhile
        assert fetch(sock, b"key1") == bytes(1)
        assert ask(sock, b"flush_all\r\n") == b"OK\r\n"
        assert fetch(sock, b"key1") is None
    server.process.send_signal(signal.SIGUSR1)
    assert server.wait_exit() == 0, server.log()


@pytest.mark.parametrize("mode", ["launch", "persistent", "edge"])
def test_on_a_gpu(target, monkeypatch, mode):  # noqa: F811
    """What the filter has refused is told if something does not work."""
    options = (*on_gpu(target, mode, monkeypatch), "-t", "2", "-o", "drop_privileges")
    server = start_server(target, options)
    try:
        assert eventually(lambda: filtered(server))
        work_on_gpu(server)
    except BaseException as failure:
        server.stop()
        server = start_server(target, options)
        with refused_calls(server.pid) as calls, contextlib.suppress(Exception):
            work_on_gpu(server)
        raise AssertionError(f"system calls that failed with EPERM: {calls}\n{server.log()}") from failure
    finally:
        server.stop()


def test_refused_calls_are_seen(tmp_path):
    """By which call number; also of a thread that begins later."""
    program = f"""
import contextlib, os, threading
def fail():
    with contextlib.suppress(PermissionError):
        os.link({str(tmp_path)!r}, {str(tmp_path / "other")!r})  # there are no links to folders
input()
fail()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        with refused_calls(process.pid) as calls:
            process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 0
    assert sum(int(line.split()[-1]) for line in calls) == 2, calls


def test_what_cannot_be_filtered_is_refused(target):  # noqa: F811
    done = subprocess.run(
        [target.path, "-o", "drop_privileges", "--nic-cache=none", "-U", "11211"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 64
    assert "-o drop_privileges cannot be had with" in done.stderr
