# SPDX-License-Identifier: Apache-2.0
"""The server stands still, and the clock on the wall is set."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.patience import PATIENCE_S

from faults.support import bystander, eventually, fetch, stats, store

PAUSE_S = 2.2
YEAR_S = 365 * 24 * 3600


def test_paused_and_resumed(server):
    """Requests sent meanwhile are answered; what has expired meanwhile is gone, the rest is not."""
    with server.connect(PATIENCE_S) as sock, server.connect(PATIENCE_S) as other:
        store(sock, b"kept", b"kept")
        store(sock, b"later", b"later", exptime=60)
        store(sock, b"brief", b"brief", exptime=1)
        before = int(stats(server)["uptime"])
        os.kill(server.pid, signal.SIGSTOP)
        try:
            sock.sendall(b"get brief\r\nget kept later\r\n")
            other.sendall(b"set big 0 0 300000\r\n" + bytes(300_000) + b"\r\n")
            late = server.connect(PATIENCE_S)
            late.sendall(b"mn\r\n")
            with server.connect_udp() as udp:
                for _ in range(50):
                    udp.send(b"\0\1\0\0\0\1\0\0get kept\r\n")
                time.sleep(PAUSE_S)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert late.recv(100) == b"MN\r\n"
        late.close()
        reply = b""
        while reply.count(b"END\r\n") < 2:
            reply += sock.recv(1000)
        assert b"kept\r\nVALUE later" in reply
        assert other.recv(100) == b"STORED\r\n"
        assert eventually(lambda: fetch(sock, b"brief") is None)
        assert eventually(lambda: int(stats(server)["uptime"]) - before >= int(PAUSE_S))
        with bystander(server):
            pass
        assert (fetch(sock, b"kept"), fetch(sock, b"later")) == (b"kept", b"later")


def test_paused_again_and_again(server):
    """Short pauses under load: nothing is lost, nothing is answered twice."""
    with server.connect(PATIENCE_S) as sock:
        store(sock, b"n", b"0")
        sent = 0
        for _ in range(20):
            sock.sendall(b"incr n 1\r\n" * 500)
            sent += 500
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(0.01)
            os.kill(server.pid, signal.SIGCONT)
        last = b"%d\r\n" % sent
        reply = b""
        while not reply.endswith(last):
            data = sock.recv(1 << 16)
            assert data
            reply += data
        assert reply == b"".join(b"%d\r\n" % (i + 1) for i in range(sent))


def test_idle_connections_survive_a_pause_with_their_requests(start_server):
    """idle_timeout counts silence: who spoke while the server stood still is answered first."""
    server = start_server("-o", "idle_timeout=2", "-t", "1")
    with server.connect(PATIENCE_S) as sock:
        assert ask(sock, b"mn\r\n") == b"MN\r\n"
        os.kill(server.pid, signal.SIGSTOP)
        try:
            sock.sendall(b"mn\r\n")
            time.sleep(3.5)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert sock.recv(100) == b"MN\r\n"


@pytest.mark.parametrize("started_at", [0.1, 0.85])
def test_dates_are_those_of_the_wall_clock(start_server, started_at):
    """What is stored until a date goes on that date, in whatever part of a second the server started."""
    time.sleep((started_at - time.time()) % 1)
    server = start_server()
    with server.connect(PATIENCE_S) as sock:

        def agrees() -> bool:
            time.sleep((0.4 - time.time()) % 1)
            now = int(time.time())
            store(sock, b"dated", b"1", exptime=now + 100)
            left = ask(sock, b"mg dated t\r\n")
            return time.time() < now + 0.8 and left == b"HD t100\r\n"

        assert eventually(agrees, PATIENCE_S)  # a busy machine may need many attempts


@pytest.fixture(scope="module")
def clock_shim(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler for the clock's shim")
    library = tmp_path_factory.mktemp("shim") / "clock_shim.so"
    source = Path(__file__).with_name("clock_shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize("jump_s", [YEAR_S, -YEAR_S, 3600, -3600])
def test_wall_clock_is_set(start_server, clock_shim, tmp_path, jump_s):
    """A time to live in seconds is exact, whatever happens to the wall clock."""
    shift = tmp_path / "shift"
    shift.write_text("0")
    sanitizer = os.environ.get("ASAN_OPTIONS", "")
    server = start_server(
        "-t",
        "2",
        env={
            "LD_PRELOAD": str(clock_shim),
            "CLOCK_SHIM": str(shift),
            "ASAN_OPTIONS": f"{sanitizer}:verify_asan_link_order=0",
        },
    )
    with server.connect(PATIENCE_S) as sock:
        store(sock, b"forever", b"1")
        store(sock, b"minute", b"1", exptime=60)
        store(sock, b"dated", b"1", exptime=int(time.time()) + 60)
        started = time.monotonic()  # before the server learns of it
        store(sock, b"brief", b"1", exptime=2)
        uptime = int(stats(server)["uptime"])
        shift.write_text(str(jump_s))
        with bystander(server):
            time.sleep(1.1)  # The server has looked at its clocks since.
        for key in (b"forever", b"minute", b"dated"):
            assert fetch(sock, key) == b"1", key
        store(sock, b"new", b"1", exptime=60)
        assert fetch(sock, b"new") == b"1"
        assert eventually(lambda: fetch(sock, b"brief") is None)
        assert 1 <= time.monotonic() - started, "it expired too early"
        assert 0 <= int(stats(server)["uptime"]) - uptime < 30
