# SPDX-License-Identifier: Apache-2.0
"""A client of active messages that vanishes, stalls or sends nonsense harms no other one.

What it held is free again: docs/ucx.md says after which time, and am_transport_test.cc checks that by a clock of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.patience import PATIENCE_S
from harness.ucx import Bridge, UcxServer, environment, find_ucx_program

# Ended by the server, which says why.
BREAKS_RULES = {
    "no-hello": "the first message must be a hello",
    "version": "this server speaks version 1 of the byte layout",
    "two-hellos": "a second hello",
    "handler": "there is no such handler",
    "order": "a message is out of order",
    "long-rendezvous": "data by rendezvous of that handler, size or number",
}
# Ended, but by which rule depends on what comes first.
ENDED = ("window", "noise", "many-rendezvous", "silent")
# Held until the client is killed.
HELD = ("rendezvous-of-commands", "half-set", "set-announced", "get-announced", "no-reading")
# Between two commands of a client that works meanwhile. One that never pauses keeps a processor busy, and its server's thread another.
OTHERS_PAUSE_S = 0.005


@contextlib.contextmanager
def hostile(server: UcxServer, scenario: str):
    """The client, when it has done what the scenario says."""
    process = subprocess.Popen(
        [find_ucx_program("ucx_hostile"), "127.0.0.1", str(server.ucx_port), scenario],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment(server.transports)},
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.stdout.close()


@pytest.fixture(scope="module", params=("shm", "tcp"))
def server(request):
    with UcxServer("-m", "256", "-t", "2", transports=request.param) as started:
        with started.sockets.connect() as sock:
            large = b"l" * (512 * 1024)
            assert ask(sock, b"set large 0 0 %d\r\n%s\r\n" % (len(large), large), b"\r\n") == b"STORED\r\n"
            assert ask(sock, b"set small 0 0 4000\r\n%s\r\n" % (b"s" * 4000), b"\r\n") == b"STORED\r\n"
        yield started


@contextlib.contextmanager
def others(server: UcxServer):
    """Clients of both kinds that work meanwhile; each answer is checked."""
    stop = threading.Event()
    failures: list[str] = []
    done = [0, 0]

    def work(number: int, reached) -> None:
        key = b"other%d" % number
        try:
            with reached.connect() as sock:
                while not stop.wait(OTHERS_PAUSE_S):
                    value = b"%d" % done[number]
                    reply = ask(sock, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value), b"\r\n")
                    assert reply == b"STORED\r\n"
                    reply = ask(sock, b"get %s\r\n" % key, b"END\r\n")
                    assert reply == b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value)
                    done[number] += 1
        except Exception as error:  # noqa: BLE001 - any failure is the test's result
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate((server.server, server.sockets))]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: all(done) or failures, "the others begin")
        yield
        before = list(done)
        wait_for(lambda: failures or all(now > then for now, then in zip(done, before)), "the others go on")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


def wait_for(condition, what: str, seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        time.sleep(0.02)


def held(server: UcxServer) -> dict[str, int]:
    names = ("ucx_endpoints", "segments_pinned", "segments_reserved")
    stats = server.stats()
    return {name: int(stats[name]) for name in names}


def wait_freed(server: UcxServer, before: dict[str, int]) -> None:
    wait_for(lambda: held(server) == before, f"as before, {before}; now {held(server)}")


@pytest.fixture
def level(server):
    """What the server holds without hostile clients."""
    wait_for(lambda: held(server)["ucx_endpoints"] == 0, "no endpoint is left of an earlier test")
    return held(server)


@pytest.mark.parametrize("scenario", sorted(BREAKS_RULES))
def test_who_breaks_the_rules_is_told_and_ended(server, level, scenario):
    broken = int(server.stats()["ucx_broken_rules"])
    with others(server), hostile(server, scenario) as process:
        assert process.stdout.readline() == f"closed {BREAKS_RULES[scenario]}\n"
        assert int(server.stats()["ucx_broken_rules"]) == broken + 1
    wait_freed(server, level)


@pytest.mark.parametrize("scenario", ENDED)
def test_who_sends_nonsense_is_ended(server, level, scenario):
    with others(server), hostile(server, scenario) as process:
        assert process.stdout.readline().startswith("closed")
    wait_freed(server, level)


@pytest.mark.parametrize("scenario", HELD)
def test_a_killed_client_frees_what_it_held(server, level, scenario):
    with others(server), hostile(server, scenario):
        assert held(server)["ucx_endpoints"] > level["ucx_endpoints"]
    wait_freed(server, level)
    assert server.sockets.alive()


@pytest.mark.long
def test_who_does_not_read_does_not_end_others(server, level):
    """Its messages fill what UCX has for them between the two processes. That is no message that stands before all others."""
    restarts = server.stats()["ucx_restarts"]
    with others(server), hostile(server, "no-reading"):
        time.sleep(6)  # the server looks once a second, and decides after a few looks
        assert server.stats()["ucx_restarts"] == restarts
    wait_freed(server, level)


def begin_a_message(pid: int) -> list[str]:
    """Reserves the next place of a process's queue in shared memory, as who is killed there leaves it; UCX 1.13's layout: the queue
    is the small file, and begins with how many places were taken. Returns all files of that memory in /proc."""
    files = [path for path in Path(f"/proc/{pid}/fd").iterdir() if "/ucx_shm" in os.readlink(path)]
    queues = [path for path in files if path.stat().st_size < 1 << 20]
    if len(queues) != 1 or len(files) < 2:
        pytest.skip("UCX lays its shared memory out in another way")
    with open(queues[0], "r+b", buffering=0) as memory:
        (taken,) = struct.unpack("<Q", memory.read(8))
        assert 0 < taken % (1 << 63) < 10_000
        memory.seek(0)
        memory.write(struct.pack("<Q", taken + 1))
    return [str(path) for path in files]


def test_half_a_message_stands_before_others_for_seconds(server):
    """The thread's UCX starts anew. Who still knows the old memory by its number does not get another file."""
    if server.transports != "shm":
        pytest.skip("messages wait for each other in shared memory only")
    with UcxServer("-t", "1", transports=server.transports) as own:
        with own.server.connect() as sock:
            assert ask(sock, b"set a 0 0 1\r\nx\r\n", b"\r\n") == b"STORED\r\n"
            files = begin_a_message(own.sockets.pid)
            sock.sendall(b"get a\r\n")
            assert sock.recv(100) == b""
        assert own.stats()["ucx_restarts"] == "1"
        assert {os.readlink(path) for path in files} == {"/dev/null"}
        with own.server.connect() as sock:
            assert ask(sock, b"get a\r\n", b"END\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"


def test_commands_by_rendezvous_work(server, level):
    with hostile(server, "rendezvous-of-commands"), server.sockets.connect() as sock:
        assert ask(sock, b"get by-rendezvous\r\n", b"END\r\n") == b"VALUE by-rendezvous 0 2\r\nok\r\nEND\r\n"


@pytest.mark.not_on_gpu(reason="bodies and values on their way lie in the host's memory there")
def test_half_a_value_takes_the_stall_timeout(server):
    """As for sockets, and the body's memory goes to who needs it."""
    with UcxServer("-o", "stall_timeout=2", transports=server.transports) as own:
        before = held(own)
        with hostile(own, "half-set") as process:
            wait_for(lambda: held(own)["segments_reserved"] > before["segments_reserved"], "it holds a body")
            assert process.stdout.readline().startswith("closed")
        wait_freed(own, before)


@pytest.mark.not_on_gpu(reason="bodies and values on their way lie in the host's memory there")
def test_values_that_nobody_fetches_take_the_stall_timeout(server):
    with UcxServer("-o", "stall_timeout=2", transports=server.transports) as own:
        with own.sockets.connect() as sock:
            large = b"l" * (512 * 1024)
            assert ask(sock, b"set large 0 0 %d\r\n%s\r\n" % (len(large), large), b"\r\n") == b"STORED\r\n"
        before = held(own)
        with hostile(own, "get-announced"):
            wait_for(lambda: held(own)["segments_pinned"] > before["segments_pinned"], "it holds a pin")
            wait_freed(own, before)


def test_noise_at_the_listening_port(server, level):
    """Bytes of a port scanner, a connection that says nothing, one that breaks off."""
    noise = random.Random(5)
    with others(server):
        silent = [socket.create_connection(("127.0.0.1", server.ucx_port), PATIENCE_S) for _ in range(5)]
        for size in (1, 7, 64, 500, 5000, 200000):
            with socket.create_connection(("127.0.0.1", server.ucx_port), PATIENCE_S) as sock:
                with contextlib.suppress(OSError):
                    sock.sendall(noise.randbytes(size))
                    sock.settimeout(0.2)
                    sock.recv(100)
        for sock in silent:
            sock.close()
    assert server.sockets.alive()
    bridge = Bridge(server.ucx_port, server.transports)
    try:
        with server.reached_by(bridge).connect() as sock:
            assert ask(sock, b"get nothing\r\n", b"END\r\n") == b"END\r\n"
    finally:
        bridge.kill()
    wait_freed(server, level)


def test_the_limit_on_connections_counts_endpoints(server):
    with UcxServer("-c", "4", "-t", "2", transports=server.transports) as own:
        replies = []
        with contextlib.ExitStack() as clients:
            asked = clients.enter_context(own.sockets.connect())
            assert ask(asked, b"get a\r\n", b"END\r\n") == b"END\r\n"
            for _ in range(7):
                sock = clients.enter_context(own.server.connect())
                sock.sendall(b"get a\r\n")
                replies.append(sock.recv(100))
            assert sorted(replies) == [b""] * 4 + [b"END\r\n"] * 3
            assert own.stats(asked)["ucx_refused"] == "4"
            own.bridge.kill()
            wait_for(lambda: own.stats(asked)["ucx_endpoints"] == "0", "the places are free again")


def test_login_is_needed_as_for_sockets(server):
    with UcxServer("-Y", "{file:users}", transports=server.transports, files={"users": "ada:secret\n"}) as own:
        with own.server.connect() as sock:
            assert ask(sock, b"get a\r\n", b"\r\n").startswith(b"CLIENT_ERROR unauthenticated")
            assert ask(sock, b"set x 0 0 10\r\nada secret\r\n", b"\r\n") == b"STORED\r\n"
            assert ask(sock, b"get a\r\n", b"END\r\n") == b"END\r\n"


def test_noadmin_and_bad_addresses(server):
    with UcxServer(transports=server.transports) as own:
        program = own.sockets.target.path
        for value in ("", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000"):
            result = subprocess.run([program, f"--ucx={value}"], capture_output=True, text=True, timeout=PATIENCE_S)
            assert result.returncode == 64 and "--ucx does not accept" in result.stderr
        for value, why in (
            (f"127.0.0.1:{own.ucx_port}", "the address is in use"),
            ("no.such.host.invalid:11212", "no.such.host.invalid"),
        ):
            command = [program, "-u", "root", "-s", str(own.sockets.log_path) + ".sock", f"--ucx={value}"]
            result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
            assert result.returncode == 71 and why in result.stderr, result.stderr
