# SPDX-License-Identifier: Apache-2.0
"""One client asks for too much; what the others still get. Facts about order and bounds, no times:
the times are bench/isolation's."""

from __future__ import annotations

import contextlib
import re
import socket
import threading

import pytest
from faults.support import (
    UNSENT_MIB_MAX,
    allowed_mib,
    cpu_seconds,
    eventually,
    is_sanitized,
    peak_mib,
    reset,
    resident_mib,
    stats,
)
from harness.channels import UDP_HEADER
from harness.exchange import ask, begin_watch, receive_all, receive_until
from harness.patience import PATIENCE_S
from harness.servers import start_server as start

ITEMS = 100_000
DUMP = b"lru_crawler metadump all\r\n"
WALK_MIB_MAX = 1
THREADS = 2


def fill(server, items: int = ITEMS) -> None:
    with server.connect(PATIENCE_S) as sock:
        for start in range(0, items, 1000):
            sets = (
                b"set key:%06d 0 0 10 noreply\r\n0123456789\r\n" % i
                for i in range(start, start + 1000)
            )
            assert ask(sock, b"".join(sets) + b"mn\r\n") == b"MN\r\n"


@pytest.fixture
def server(start_server):
    server = start_server("-m", "64", "-t", str(THREADS), "-c", "2000", udp=True)
    fill(server)
    return server


def say(sock: socket.socket, request: bytes) -> None:
    """Sends what is taken at once: the server need not read on."""
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        sock.send(request)


def is_unread(sock: socket.socket) -> bool:
    """Whether part of the reply still waits for this client to read. The connection is there."""
    try:
        return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return False


def others_are_answered(server, attack, count: int = 200) -> None:
    """The others, on all workers, are answered `count` times after the attack has been sent."""
    others = [server.connect(PATIENCE_S) for _ in range(4 * THREADS)]
    for other in others:
        assert ask(other, b"mn\r\n") == b"MN\r\n"
    attack()
    for turn in range(count):
        assert ask(others[turn % len(others)], b"mn\r\n") == b"MN\r\n"
    for other in others:
        other.close()


def test_watchers_that_do_not_read_hold_nobody_up(server):
    """Each misses lines; the others are answered, and memory is bounded by the pipes and buffers."""
    deaf = [server.connect(PATIENCE_S) for _ in range(20)]
    for sock in deaf:
        begin_watch(sock, "fetchers mutations rawcmds connevents")
    before = resident_mib(server)
    keys = b" ".join(b"%0200d" % i for i in range(9))
    with server.connect(PATIENCE_S) as busy:
        while int(stats(server)["log_watcher_skipped"]) < 100_000:
            busy.sendall((b"get " + keys + b"\r\n") * 200 + b"mn\r\n")
            receive_until(busy, b"MN\r\n")
        others_are_answered(server, lambda: None)
    if not is_sanitized(server.target.path):
        # Pipe and unwritten lines of each, and the buffers of the threads.
        assert resident_mib(server) - before < 20 * 2 * 0.25 + 33 / 16 + 8
    assert stats(server)["log_watchers"] == "20"
    for sock in deaf:
        sock.close()


def check_peak(server, before: float, connections: int) -> None:
    """Unsent replies of all threads and a walk's buffer come on top of what there was."""
    if is_sanitized(server.target.path):
        return
    unsent = THREADS * UNSENT_MIB_MAX + WALK_MIB_MAX
    assert peak_mib(server) <= max(
        allowed_mib(64, busy=connections, unsent_mib=unsent), before + unsent
    )


def test_others_are_answered_while_dumps_are_unread(server, closing):
    """100 connections ask for 30 dumps each and read nothing."""

    def attack():
        for _ in range(100):
            closing.append(server.connect(PATIENCE_S))
            say(closing[-1], DUMP * 30)

    before = resident_mib(server)
    others_are_answered(server, attack)
    assert eventually(lambda: any(is_unread(sock) for sock in closing), PATIENCE_S)
    check_peak(server, before, 110)
    for sock in closing:
        reset(sock)
    closing.clear()


def test_who_does_not_read_costs_the_system_little(server, closing):
    """Not the megabytes that it would take of each reply, and the thread's time to copy them."""
    size = 500_000
    with server.connect(PATIENCE_S) as sock:
        for i in range(10):
            assert ask(sock, b"set big%d 0 0 %d\r\n" % (i, size) + b"b" * size + b"\r\n") == b"STORED\r\n"
    before = int(stats(server)["bytes_written"])
    for _ in range(20):
        sock = socket.socket()
        closing.append(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", server.port))
        sock.sendall(b"get" + b"".join(b" big%d" % i for i in range(10)) + b"\r\n")
    assert eventually(lambda: all(is_unread(sock) for sock in closing), PATIENCE_S)
    assert int(stats(server)["bytes_written"]) - before < 20 * size


@pytest.mark.long
def test_32_dumps_in_one_write(server, closing):
    """They are 190 MB of text: unread while the others are answered, then each has its answer."""

    def attack():
        closing.append(server.connect(PATIENCE_S))
        say(closing[0], DUMP * 32 + b"mn\r\n")

    before = resident_mib(server)
    others_are_answered(server, attack)
    closing[0].settimeout(PATIENCE_S)
    reply = receive_until(closing[0], b"MN\r\n")
    assert len(re.findall(rb"^(?:END|BUSY[^\r]*)\r\n", reply, re.MULTILINE)) == 32
    check_peak(server, before, 10)


def test_a_dump_that_is_read_has_every_key(server):
    """Whatever its size: what was there all the time is in it, once, and it ends with END."""
    with server.connect(PATIENCE_S) as sock:
        keys = re.findall(rb"^key=key%3A(\d{6}) ", ask(sock, DUMP, b"END\r\n"), re.MULTILINE)
        assert sorted(keys) == [b"%06d" % i for i in range(ITEMS)]
        assert ask(sock, b"mn\r\n") == b"MN\r\n"


def test_a_dump_larger_than_any_buffer_comes_whole(start_server):
    """Keys of 250 bytes make 200,000 of them a dump of more than 60 MB."""
    server = start_server("-m", "256", "-t", str(THREADS))
    items, tail = 200_000, b"k" * 243
    with server.connect(PATIENCE_S) as sock:
        for start in range(0, items, 1000):
            sets = (
                b"set %06d:%s 0 0 1 noreply\r\nx\r\n" % (i, tail)
                for i in range(start, start + 1000)
            )
            assert ask(sock, b"".join(sets) + b"mn\r\n") == b"MN\r\n"
        dump = ask(sock, DUMP, b"\nEND\r\n")
        keys = re.findall(rb"^key=(\d{6})%3A" + tail + b" ", dump, re.MULTILINE)
        assert sorted(keys) == [b"%06d" % i for i in range(items)]


def test_a_second_dump_gets_busy_while_one_is_unread(server, closing):
    first = server.connect(PATIENCE_S)
    closing.append(first)
    say(first, DUMP)
    assert eventually(lambda: is_unread(first), PATIENCE_S)
    with server.connect(PATIENCE_S) as second:
        assert ask(second, DUMP).startswith(b"BUSY")
        assert ask(second, b"mn\r\n") == b"MN\r\n"
        first.settimeout(PATIENCE_S)
        assert receive_until(first, b"\nEND\r\n").count(b"\n") > ITEMS
        assert ask(second, DUMP, b"\nEND\r\n").count(b"\n") > ITEMS


def test_a_dump_ends_with_its_connection(server):
    first = server.connect(PATIENCE_S)
    say(first, DUMP)
    assert eventually(lambda: is_unread(first), PATIENCE_S)
    reset(first)

    def dumped() -> bool:
        with server.connect(PATIENCE_S) as sock:
            sock.sendall(DUMP + b"mn\r\n")
            return receive_until(sock, b"MN\r\n").count(b"\n") > ITEMS

    assert eventually(dumped, PATIENCE_S)


def test_no_dump_by_datagram(server):
    """100 dumps in one datagram: none is made, the next datagram is answered."""
    before = resident_mib(server)
    with server.connect_udp() as sock:
        sock.settimeout(PATIENCE_S)
        sock.send(UDP_HEADER.pack(1, 0, 1, 0) + DUMP * 100)
        sock.send(UDP_HEADER.pack(2, 0, 1, 0) + b"mn\r\n")
        received = 0
        while (reply := sock.recv(65536)) != UDP_HEADER.pack(2, 0, 1, 0) + b"MN\r\n":
            assert b"key=" not in reply
            received += len(reply)
    assert received < 64_000
    check_peak(server, before, 0)


@pytest.mark.parametrize(
    ("prepare", "command"),
    [
        (b"stats sizes_enable\r\n", b"stats sizes\r\n"),
        (b"", b"stats cachedump 1 0\r\n"),
        (b"stats detail on\r\n", b"stats detail dump\r\n"),
        (b"", b"stats\r\n"),
    ],
    ids=lambda text: text.decode().strip() or None,
)
def test_others_are_answered_while_statistics_are_unread(server, closing, prepare, command):
    """20 connections ask for the same 1,000 times and read nothing."""
    with server.connect(PATIENCE_S) as sock:
        if prepare:
            ask(sock, prepare)
        for start in range(0, 20_000, 1000):
            gets = b"".join(b"get prefix%d:x\r\n" % i for i in range(start, start + 1000))
            ask(sock, gets + b"mn\r\n", b"MN\r\n")

    def attack():
        for _ in range(20):
            closing.append(server.connect(PATIENCE_S))
            say(closing[-1], command * 1000)

    before = resident_mib(server)
    others_are_answered(server, attack)
    check_peak(server, before, 30)
    for sock in closing:
        reset(sock)
    closing.clear()


def test_failed_logins_of_one_address_keep_no_other_out(target):
    """Guesses are bounded: a client that guesses as fast as it can is refused, and no other address."""
    server = start(target, ("-t", str(THREADS), "-Y", "{file:users}"), files={"users": "u:p\n"})
    done = threading.Event()

    def connect(source: str) -> socket.socket:
        return socket.create_connection((server.host, server.port), PATIENCE_S, (source, 0))

    def guess() -> None:
        while not done.is_set():
            with connect("127.0.0.2") as sock:
                sock.sendall(b"set x 0 0 3\r\nu a\r\n" * 3)
                assert receive_all(sock) == b"CLIENT_ERROR authentication failure\r\n" * 3

    guessers = [threading.Thread(target=guess) for _ in range(2)]
    try:
        for guesser in guessers:
            guesser.start()
        for _ in range(2000):
            with connect("127.0.0.1") as sock:
                assert ask(sock, b"set x 0 0 3\r\nu p\r\n") == b"STORED\r\n"
    finally:
        done.set()
        for guesser in guessers:
            guesser.join()
        assert server.stop() == 0


def stats_cpu_s(server) -> float:
    """The server's CPU time for 200 `stats`; the least of some, since others run meanwhile."""
    with server.connect(PATIENCE_S) as sock:
        found = []
        for _ in range(5):
            used = cpu_seconds(server)
            for _ in range(200):
                ask(sock, b"stats\r\n", b"END\r\n")
            found.append(cpu_seconds(server) - used)
    return min(found)


def test_stats_costs_the_same_after_the_memory_limit_was_high(server):
    """What `stats` costs does not grow with the segments that there ever were."""
    before, cost = resident_mib(server), stats_cpu_s(server)
    with server.connect(PATIENCE_S) as sock:
        for _ in range(5):
            assert ask(sock, b"cache_memlimit 20000\r\n") == b"OK\r\n"
            assert ask(sock, b"cache_memlimit 64\r\n") == b"OK\r\n"
    assert int(stats(server)["limit_maxbytes"]) == 64 << 20
    # Maintenance, whose time counts too, moves to the last limit after the answer.
    assert eventually(lambda: stats_cpu_s(server) < 4 * cost)
    check_peak(server, before, 10)


def test_connections_that_clients_closed_are_gone(server, closing):
    """Half of the clients go while the other half keep the server busy with dumps and statistics."""
    opened = int(stats(server)["curr_connections"])
    for i in range(200):
        sock = server.connect(PATIENCE_S)
        say(sock, (DUMP if i % 2 else b"stats sizes\r\n") * 10)
        closing.append(sock)
    for sock in closing[:100]:
        sock.close()
    del closing[:100]
    assert eventually(lambda: int(stats(server)["curr_connections"]) <= opened + 100, PATIENCE_S)


def test_the_server_ends_while_it_is_asked_for_statistics(target, closing):
    """`stats sizes` are under way in any number; SIGTERM ends the server before all are answered."""
    server = start(target, ["-m", "64", "-t", "1"])
    try:
        fill(server)
        sock = server.connect(PATIENCE_S)
        closing.append(sock)
        ask(sock, b"stats sizes_enable\r\n", b"END\r\n")
        sock.sendall(b"stats sizes\r\n" * 4000)
        receive_until(sock, b"END\r\n")
        server.process.terminate()
        replies = 0
        with contextlib.suppress(ConnectionError):
            while data := sock.recv(1 << 20):
                replies += data.count(b"END\r\n")
        assert replies < 4000
        assert server.wait_exit(PATIENCE_S) == 0
    finally:
        server.stop()
