# SPDX-License-Identifier: Apache-2.0
"""Another process writes frames and rings the server's GPU (`--frames=peer`). tests/packets plays its cases this way, too."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import pytest
from harness.exchange import ask, ask_stats
from harness.fixtures import require_gpu, require_target
from harness.patience import PATIENCE_S
from harness.peer import CONTROL, CONTROL_BYTES, CONTROLS, READY, PeerLink
from harness.servers import start_server

PORT = 11211
OPTIONS = ("--gpu-mode=edge", "--udp-allow=0.0.0.0/0")


def get_frame(number: int, command: bytes) -> bytes:
    """A datagram to the server, without UDP checksum."""
    payload = struct.pack(">HHHH", number, 0, 1, 0) + command
    udp = struct.pack(">HHHH", 40000, PORT, 8 + len(payload), 0) + payload
    ip = bytearray(struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes((10, 9, 0, 1)), bytes((10, 9, 0, 2))))
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", ip, 10, ~(total + (total >> 16)) & 0xFFFF)
    return bytes.fromhex("0200000000010200000000020800") + bytes(ip) + udp


def payload_of(reply: bytes) -> bytes:
    (size,) = struct.unpack_from(">H", reply, 38)
    return reply[50 : 34 + size]


def lines_of(link: PeerLink, commands: list[bytes]) -> list[bytes]:
    burst = link.send([get_frame(i, command) for i, command in enumerate(commands)])
    replies: dict[int, bytes] = {}
    for request, reply in link.take(burst):
        replies[request] = replies.get(request, b"") + payload_of(reply)
    return [replies.get(i, b"") for i in range(len(commands))]


@pytest.fixture
def shared():
    """A folder in memory: a GPU's driver takes no other files."""
    with tempfile.TemporaryDirectory(prefix="warpcache-test-", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def server(shared):
    target = require_target("warpcached")
    require_gpu(target)
    made = start_server(target, (*OPTIONS, "-U", "0", f"--frames=peer:{shared}/frames"), unix=True)
    yield made
    assert made.stop() == 0
    assert not list(shared.iterdir())


@pytest.fixture
def link(server, shared):
    return PeerLink(shared / "frames", lambda: server.process.poll() is None)


def test_a_peer_and_a_socket_share_the_store(server, link):
    sock = server.connect()
    assert ask(sock, b"set a 5 0 3\r\nabc\r\n") == b"STORED\r\n"
    assert lines_of(link, [b"get a\r\n", b"get b\r\n"]) == [b"VALUE a 5 3\r\nabc\r\nEND\r\n", b"END\r\n"]
    assert lines_of(link, [b"set b 0 0 2\r\nxy\r\n", b"incr c 1\r\n"]) == [b"STORED\r\n", b"NOT_FOUND\r\n"]
    assert ask(sock, b"get b\r\n") == b"VALUE b 0 2\r\nxy\r\nEND\r\n"
    # What the GPU leaves to the host is answered, too.
    (version,) = lines_of(link, [b"version\r\n"])
    assert version.startswith(b"VERSION ")
    stats = ask_stats(sock)
    assert int(stats["frames_requests"]) == 5 and int(stats["frames_sent"]) == 5


def test_many_bursts_are_answered_each_once(server, link):
    generator = random.Random(1)
    values: dict[bytes, bytes] = {}
    for _ in range(60):
        sets = {b"k%d" % generator.randrange(50): b"%d" % generator.randrange(10**6) for _ in range(20)}
        assert lines_of(link, [b"set %s 0 0 %d\r\n%s\r\n" % (k, len(v), v) for k, v in sets.items()]) == [b"STORED\r\n"] * len(sets)
        values |= sets
        keys = [b"k%d" % generator.randrange(60) for _ in range(generator.randrange(1, 100))]
        want = [b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (k, len(values[k]), values[k]) if k in values else b"END\r\n" for k in keys]
        assert lines_of(link, [b"get %s\r\n" % key for key in keys]) == want


def test_several_bursts_are_rung_before_one_is_taken(server, link):
    bursts = [link.send([get_frame(i, b"get %d\r\n" % i) for i in range(8)]) for _ in range(3)]
    assert len(set(bursts)) == 3
    for burst in bursts:
        assert sorted(request for request, _ in link.take(burst)) == list(range(8))


def test_a_burst_that_waits_follows_the_clock(server, link):
    sock = server.connect()
    assert ask(sock, b"set a 0 5 1\r\nx\r\n") == b"STORED\r\n"
    assert lines_of(link, [b"get a\r\n"]) == [b"VALUE a 0 1\r\nx\r\nEND\r\n"]
    waiting = link.ready()
    assert ask(sock, b"debugtime 10\r\n") == b"OK\r\n"
    end = time.monotonic() + PATIENCE_S
    # The server tells bursts that wait what time it is. One that waited before the change is rung each time.
    while lines_of(link, [b"get a\r\n"]) != [b"END\r\n"]:
        assert time.monotonic() < end
    assert waiting


def ring_and_die(path, fill: bool) -> None:
    link = PeerLink(path)
    while not link.ready():
        time.sleep(0.001)
    burst = link.ready()[0]
    if fill:
        link.fill(burst, [get_frame(0, b"set left 0 0 1\r\nx\r\n")])
    else:
        link.fill(burst, [get_frame(0, b"get a\r\n")])
        link.ring(burst)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("fill", [False, True], ids=["after ringing", "before ringing"])
def test_peers_that_are_killed_leave_the_file_to_the_next(server, shared, fill):
    context = get_context("spawn")
    for _ in range(10 if "WARPCACHE_LONG_TESTS" in os.environ else 3):
        child = context.Process(target=ring_and_die, args=(shared / "frames", fill))
        child.start()
        child.join(PATIENCE_S)
        assert child.exitcode == -signal.SIGKILL
    link = PeerLink(shared / "frames", lambda: server.process.poll() is None)
    link.take_left()
    assert lines_of(link, [b"get a\r\n"]) == [b"END\r\n"]
    assert ask(server.connect(), b"get left\r\n") == b"END\r\n"  # it was never rung


def test_a_peer_that_writes_anything_harms_nobody(server, link, shared):
    generator = random.Random(7)
    sock = server.connect()
    assert ask(sock, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
    for _ in range(20):
        link._wait(link.ready)
        burst = link.ready()[0]
        frames = [generator.randbytes(generator.randrange(1, link.slot_bytes)) for _ in range(16)]
        frames += [get_frame(i, generator.randbytes(generator.randrange(1, 80))) for i in range(16)]
        link.fill(burst, frames)
        struct.pack_into("<I", link.memory, link._at(burst) + 4, generator.choice((0, 32, 512, 513, 1 << 31, (1 << 32) - 1)))
        link.ring(burst)
        link.ring(burst)  # twice is once
        link.rung.remove(burst)
        link.take(burst)
        assert ask(sock, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
    # The whole control page, while bursts wait.
    control = generator.randbytes(8 * 128)
    link.memory[4096 : 4096 + len(control)] = control
    assert ask(sock, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"


def ring_with_bad_addresses(link: PeerLink) -> None:
    """The job's words are behind the doorbell, each with the event's number in its upper half."""
    link._wait(link.ready)
    burst = link.ready()[0]
    link.fill(burst, [get_frame(0, b"get a\r\n")])
    _, _, doorbell, value, *_ = CONTROL.unpack_from(link.memory, CONTROLS + burst * CONTROL_BYTES)
    for word in range(1, 17):
        struct.pack_into("<Q", link.doorbells, doorbell + 8 * word, value & ~0xFFFFFFFF | 0x7FFFFFF0)
    link.ring(burst)


@pytest.mark.skipif("SIMT_WARPCACHED" in os.environ, reason="a bad address ends the process that simulates a GPU")
@pytest.mark.parametrize("on_error", ("cpu", "exit"))
def test_a_gpu_that_fails_ends_the_peers_port(shared, on_error):
    target = require_target("warpcached")
    require_gpu(target)
    server = start_server(target, (*OPTIONS, "-U", "0", f"--on-gpu-error={on_error}", f"--frames=peer:{shared}/frames"), unix=True)
    link = PeerLink(shared / "frames")
    assert lines_of(link, [b"set a 0 0 1\r\nx\r\n"]) == [b"STORED\r\n"]
    ring_with_bad_addresses(link)
    if on_error == "exit":
        assert server.process.wait(PATIENCE_S) == 70
        server.stop()
        return
    # The CPU engine goes on, with an empty cache, for all but the peer.
    with server.connect() as sock:
        end = time.monotonic() + PATIENCE_S
        while ask(sock, b"get a\r\n") != b"END\r\n":
            assert time.monotonic() < end
        assert ask(sock, b"set a 0 0 1\r\ny\r\n") == b"STORED\r\n"
        assert ask(sock, b"get a\r\n") == b"VALUE a 0 1\r\ny\r\nEND\r\n"
    assert server.stop() == 0
    assert not list(shared.iterdir())


def test_one_file_serves_one_server(server, shared):
    options = ["-s", f"{shared}/second", "-u", "root", *OPTIONS, "--engine=cuda", f"--frames=peer:{shared}/frames"]
    second = subprocess.run([require_target("warpcached").path, *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert second.returncode != 0 and "another server uses it" in second.stderr
    assert (shared / "frames").exists() and (shared / "frames.doorbells").exists()


def test_a_killed_server_leaves_a_file_that_the_next_takes(shared):
    target = require_target("warpcached")
    require_gpu(target)
    options = (*OPTIONS, "-U", "0", f"--frames=peer:{shared}/frames")
    first = start_server(target, options, unix=True)
    PeerLink(shared / "frames")._wait(lambda: any(PeerLink(shared / "frames").state(b) == READY for b in range(8)))
    first.process.kill()
    first.process.wait()
    second = start_server(target, options, unix=True)
    link = PeerLink(shared / "frames", lambda: second.process.poll() is None)
    assert lines_of(link, [b"set a 0 0 1\r\nx\r\n"]) == [b"STORED\r\n"]
    assert second.stop() == 0
    first.stop()


@pytest.mark.parametrize("options, why", [
    (("--engine=cpu",), "--frames=peer needs --engine=cuda and --gpu-mode=edge"),
    (("--engine=cuda", "--gpu-mode=launch"), "--frames=peer needs"),
    (("--engine=cuda", "--gpu-mode=edge", "--frames=peer:/dev/null/y"), "one peer"),
])  # fmt: skip
def test_refusals(shared, options, why):
    program = os.environ.get("SIMT_WARPCACHED") or require_target("warpcached").path
    done = subprocess.run([program, "-u", "root", f"--frames=peer:{shared}/frames", *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode != 0 and why in done.stderr, done.stderr
    assert not list(shared.iterdir())


