# SPDX-License-Identifier: Apache-2.0
"""The faults: a thread for each server causes random faults from a seed, one after the other. Some
last while later ones happen."""

from __future__ import annotations

import heapq
import os
import random
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from faults import hostile
from faults.killed_client import REQUESTS
from faults.support import eventually, pattern, reset
from harness.exchange import ask, receive_until
from harness.servers import Server

from soak.shared import PATIENCE_S, Situation

KILLED_CLIENT = Path(__file__).resolve().parents[1] / "faults" / "killed_client.py"
CONNECTIONS_MAX = 400  # -c
HALF_REQUESTS_MAX = 60  # held at once
HELD_S = (5, 60, 60, 240)  # at most
SLOW_READERS_MAX = 20
KILLED_CONNECTIONS = 40
MEGABYTES = 48  # -m
LIMITS = (24, 32, 40, 48)  # that cache_memlimit sets
LARGE_KEYS = 20
PAUSE_S = 0.2
# Hostile bytes must not do by chance what is done on purpose elsewhere, and counted there.
ON_PURPOSE = re.compile(
    rb"flush|memlimit|debugtime|shutdown|reset|lru_crawler m|\x80[\x08\x18]", re.IGNORECASE
)


class Trouble:
    def __init__(self, where: Situation, server: Server, wall_shift: Path | None):
        self.where = where
        self.server = server
        self.wall_shift = wall_shift  # the file that the clock shim reads
        self.chance = random.Random(f"{where.seed}/{where.name}/trouble")
        self.counts: Counter[str] = Counter()
        self.limit_mib = MEGABYTES
        self.debugtime = self._ask(b"debugtime 0\r\n") == b"OK\r\n"
        self.failure: str | None = None
        self._held = 0
        self._slow = 0
        self._due: list[tuple[float, int, Callable[[], None]]] = []  # a heap, by time
        self._number = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._kinds = {
            self._cut_connections: 4,
            self._kill_client: 1,
            self._half_request: 6,
            self._slow_reader: 3,
            self._stalled_pipeline: 1,
            self._flood: 1,
            self._hostile_lines: 6,
            self._hostile_packets: 6,
            self._hostile_datagrams: 3,
            self._move_limit: 2,
            self._flush: 0.3,
            self._jump_clock: 0.4 if self.debugtime else 0,
            self._set_wall_clock: 0.5 if wall_shift is not None else 0,
            self._pause: 1,
            self._press_memory: 3,
            self._no_descriptors: 0.5,
            self._dump: 0.3,
        }

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Ends what is still held."""
        self._ending.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "a fault does not end"

    # --- What all use

    def _run(self) -> None:
        kinds, weights = list(self._kinds), list(self._kinds.values())
        try:
            while not self._ending.is_set():
                (kind,) = self.chance.choices(kinds, weights)
                kind()
                self.counts[kind.__name__.strip("_").replace("_", " ")] += 1
                self._end_what_is_due(time.monotonic())
                self._ending.wait(self.chance.uniform(0, 0.2))
        except (OSError, AssertionError) as problem:
            self.failure = f"{self.where.name}, {kind.__name__}: {problem!r}"
        self._end_what_is_due(float("inf"))
        if self.limit_mib != MEGABYTES:
            self._set_limit(MEGABYTES)

    def _end_what_is_due(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            heapq.heappop(self._due)[2]()

    def _later(self, longest_s: float, action: Callable[[], None]) -> None:
        self._number += 1
        when = time.monotonic() + self.chance.uniform(0.05, longest_s)
        heapq.heappush(self._due, (when, self._number, action))

    def _connect(self) -> socket.socket:
        return self.server.connect(PATIENCE_S)

    def _ask(self, request: bytes, end: bytes = b"\r\n") -> bytes:
        with self._connect() as sock:
            return ask(sock, request, end)

    def _end_roughly(self, sock: socket.socket) -> None:
        if self.chance.random() < 0.5:
            reset(sock)
        else:
            sock.close()

    # --- Clients

    def _cut_connections(self) -> None:
        for _ in range(20):
            sock = self._connect()
            request = self.chance.choice(REQUESTS)
            sock.sendall(request[: self.chance.randrange(1, len(request))])
            self._end_roughly(sock)

    def _kill_client(self) -> None:
        command = [sys.executable, str(KILLED_CLIENT), str(self.server.port)]
        command += [str(KILLED_CONNECTIONS), str(self.chance.randrange(1 << 20))]
        client = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            client.stdout.readline()
            time.sleep(self.chance.uniform(0, 0.2))
        finally:
            client.kill()
            client.wait()
            client.stdout.close()

    def _half_request(self) -> None:
        """Held for a while, then completed or cut off."""
        if self._held >= HALF_REQUESTS_MAX:
            return
        self._held += 1
        sock = self._connect()
        request = self.chance.choice(REQUESTS[:4])
        cut = self.chance.randrange(1, len(request))
        sock.sendall(request[:cut])

        def complete() -> None:
            self._held -= 1
            if self._ending.is_set() or self.chance.random() < 0.3:
                self._end_roughly(sock)
                return
            sock.sendall(request[cut:])
            reply = receive_until(sock, b"\r\n")
            good = (b"STORED\r\n", b"SERVER_ERROR out of memory storing object\r\n")
            assert reply.startswith(b"HD c") or reply in good, reply
            sock.close()

        self._later(self.chance.choice(HELD_S), complete)

    def _slow_reader(self) -> None:
        """Asks for megabytes and reads a little of it at last."""
        if self._slow >= SLOW_READERS_MAX:
            return
        self._slow += 1
        sock = self._connect()
        key = b"slow%d" % self.chance.randrange(LARGE_KEYS)
        value = pattern(self.chance.randrange(1000), self.chance.randrange(20_000, 900_000))
        reply = ask(sock, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        assert reply in (b"STORED\r\n", b"SERVER_ERROR out of memory storing object\r\n"), reply
        sock.sendall(b"get" + b" " + b" ".join(b"slow%d" % i for i in range(LARGE_KEYS)) + b"\r\n")

        def read_some() -> None:
            self._slow -= 1
            try:
                head = sock.recv(5)
            except ConnectionResetError:
                head = b""  # closed, with too much unsent on its thread
            assert head in (b"VALUE", b"END\r\n", b""), head
            self._end_roughly(sock)

        self._later(20, read_some)

    def _stalled_pipeline(self) -> None:
        """Sends requests and reads nothing, until the server reads no more."""
        sock = self._connect()
        sock.setblocking(False)
        line = b"get " + b" ".join(b"slow%d" % i for i in range(LARGE_KEYS)) + b"\r\n"
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            try:
                sock.send(line * 100)
            except BlockingIOError:
                time.sleep(0.02)
        self._later(10, lambda: self._end_roughly(sock))

    def _flood(self) -> None:
        """More connections than -c allows; those that are refused are told."""
        self.where.floods.begin()
        socks = [self._connect() for _ in range(CONNECTIONS_MAX + 50)]
        served = 0
        for sock in socks:
            try:
                sock.sendall(b"mn\r\n")
                reply = sock.recv(100)
            except OSError:
                reply = b""
            assert reply in (b"MN\r\n", b"ERROR Too many open connections\r\n", b""), reply
            served += reply == b"MN\r\n"
        assert 0 < served <= CONNECTIONS_MAX, served
        for sock in socks:
            self._end_roughly(sock)
        assert eventually(lambda: self._ask(b"mn\r\n") == b"MN\r\n"), "nobody is let in"
        self.where.floods.end()

    # --- Bytes

    def _say_hostile(self, request: bytes) -> bytes:
        return b"" if ON_PURPOSE.search(request) else hostile.say_and_listen(self.server, request)

    def _hostile_lines(self) -> None:
        for _ in range(10):
            lines = [hostile.mutated_line(self.chance) for _ in range(self.chance.randint(1, 4))]
            reply = self._say_hostile(b"".join(lines))
            assert not reply or reply.endswith(b"\n") or b"\x81" in reply, (lines, reply[-100:])

    def _hostile_packets(self) -> None:
        for _ in range(10):
            request = hostile.mutated(self.chance, hostile.honest_packet(self.chance))
            reply = self._say_hostile(request)
            assert reply[:1] != b"\x81" or request[0] == 0x80, (request, reply[:100])

    def _hostile_datagrams(self) -> None:
        with self.server.connect_udp() as sock:
            for i in range(30):
                datagram = hostile.mutated_datagram(self.chance, i)
                if not ON_PURPOSE.search(datagram):
                    sock.send(datagram)
            while select.select([sock], [], [], 0.01)[0]:
                sock.recv(65536)

    # --- Memory

    def _set_limit(self, megabytes: int) -> None:
        self.limit_mib = max(self.limit_mib, megabytes)
        reply = self._ask(b"cache_memlimit %d\r\n" % megabytes)
        assert reply == b"OK\r\n" or reply.startswith(b"MEMLIMIT_ADJUST_FAILED"), reply
        if reply == b"OK\r\n":
            self.limit_mib = megabytes

    def _move_limit(self) -> None:
        self._set_limit(self.chance.choice(LIMITS))

    def _press_memory(self) -> None:
        """Stores junk until there is no room, or thrice the memory; then deletes some of it."""
        size = self.chance.choice([50, 500, 5000, 50_000, 500_000])
        count = min(MEGABYTES * 3_000_000 // (size + 100), 20_000)
        ttl_s = 0 if self.where.lossy else 2
        value = pattern(size, size)
        refused = 0
        with self._connect() as sock, sock.makefile("rb") as replies:
            for first in range(0, count, 50):
                batch = b"".join(
                    b"set junk%d 0 %d %d\r\n%s\r\n" % (i, ttl_s, size, value)
                    for i in range(first, first + 50)
                )
                sock.sendall(batch)
                for _ in range(50):
                    reply = replies.readline()
                    refused += reply.startswith(b"SERVER_ERROR out of memory")
                    assert reply == b"STORED\r\n" or reply.startswith(b"SERVER_ERROR out"), reply
                if refused > 200 or self._ending.is_set():
                    break
            sock.sendall(b"".join(b"delete junk%d\r\n" % i for i in range(0, first, 2)))
            for _ in range(0, first, 2):
                assert replies.readline() in (b"DELETED\r\n", b"NOT_FOUND\r\n")
        self.counts["refused for want of memory"] += refused

    def _flush(self) -> None:
        self.where.flushes.begin()
        assert self._ask(b"flush_all\r\n") == b"OK\r\n"
        self.where.flushes.end()

    def _dump(self) -> None:
        """A walk over all that is stored, while it changes."""
        reply = self._ask(b"stats sizes\r\n", b"END\r\n")
        assert reply.startswith((b"STAT", b"END")), reply[:100]
        reply = self._ask(b"stats cachedump 1 0\r\n", b"END\r\n")
        assert reply.startswith((b"ITEM", b"END")), reply[:100]

    # --- Time and descriptors

    def _jump_clock(self) -> None:
        seconds = self.chance.choice([1, 5, 50, 500])
        self.where.clock_shift_s.begin(seconds)
        assert self._ask(b"debugtime %d\r\n" % seconds) == b"OK\r\n"
        self.where.clock_shift_s.end()

    def _set_wall_clock(self) -> None:
        fresh = self.wall_shift.with_suffix(".new")
        fresh.write_text(str(self.chance.choice([0, 3600, -3600, 10**7, -(10**7)])))
        fresh.rename(self.wall_shift)

    def _pause(self) -> None:
        os.kill(self.server.pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE_S)
        finally:
            os.kill(self.server.pid, signal.SIGCONT)

    def _no_descriptors(self) -> None:
        """Who connects meanwhile waits, and is served when there are descriptors again."""
        limits = resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE)
        numbers = [int(name) for name in os.listdir(f"/proc/{self.server.pid}/fd")]
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (max(numbers) + 3, limits[1]))
        try:
            socks = [self._connect() for _ in range(30)]
            for sock in socks:
                sock.sendall(b"mn\r\n")
            time.sleep(0.3)
        finally:
            resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, limits)
        for sock in socks:
            assert sock.recv(100) == b"MN\r\n"
            sock.close()
