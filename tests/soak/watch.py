# SPDX-License-Identifier: Apache-2.0
"""What must hold of a server all along: its statistics fit together, its memory stays within -m and
the overhead that is stated, and a small request is answered in time."""

from __future__ import annotations

import socket
import threading

from faults.support import (
    UNSENT_MIB_MAX,
    Bystander,
    allowed_mib,
    fetch,
    is_sanitized,
    peak_mib,
    resident_mib,
)
from harness.exchange import ask
from harness.servers import Server

from soak.shared import PATIENCE_S, Situation
from soak.trouble import (
    CONNECTIONS_MAX,
    HALF_REQUESTS_MAX,
    KILLED_CONNECTIONS,
    MEGABYTES,
    SLOW_READERS_MAX,
)

LOOK_EVERY_S = 0.5
THREADS = 2
MIB = 1 << 20
# Totals that only grow.
TOTALS = (
    "cmd_get cmd_set cmd_touch cmd_meta get_hits get_misses get_expired get_flushed delete_hits "
    "delete_misses incr_hits incr_misses cas_hits cas_misses cas_badval touch_hits touch_misses "
    "bytes_read bytes_written total_connections total_items evictions evicted_unfetched reclaimed "
    "expired_unfetched cmd_flush rejected_connections items_moved index_splits"
).split()


class Broken(Exception):
    """An invariant does not hold."""


def parse_stats(reply: bytes) -> dict[str, int]:
    pairs = (line.split(" ", 2)[1:] for line in reply.decode().splitlines()[:-1])
    return {name: int(value) for name, value in pairs if value.lstrip("-").isdigit()}


def check_one(numbers: dict[str, int], lossy: bool) -> None:
    """Of one reading."""
    limit = numbers["limit_maxbytes"]
    rules = {
        "the limit is one that was set": limit <= MEGABYTES * MIB,
        "items fit into the limit": 0 <= numbers["bytes"] <= MEGABYTES * MIB,
        "the index fits into the limit": 0 < numbers["hash_bytes"] <= MEGABYTES * MIB,
        "no more items than were ever stored": 0 <= numbers["curr_items"] <= numbers["total_items"],
        "connections are within -c": 0 < numbers["curr_connections"] <= CONNECTIONS_MAX + 1,
        "-M evicts nothing": lossy or numbers["evictions"] == 0,
        "held segments are few": numbers["segments_pinned"] + numbers["segments_reserved"]
        <= numbers["segments_in_all"],
    }
    for rule, holds in rules.items():
        if not holds:
            raise Broken(f"{rule}: {numbers}")


def check_two(before: dict[str, int], after: dict[str, int]) -> None:
    """Compares two successive readings. Totals that belong together are not read at one instant."""
    for name in TOTALS:
        if after[name] < before[name]:
            raise Broken(f"{name} fell from {before[name]} to {after[name]}")
    if before["get_hits"] + before["get_misses"] > after["cmd_get"]:
        raise Broken(f"more hits and misses than gets: {before} {after}")
    if before["cmd_get"] > after["get_hits"] + after["get_misses"]:
        raise Broken(f"more gets than hits and misses: {before} {after}")


class Patient(Bystander):
    """A bystander who may be told that there is no memory; the key is not there then."""

    def _say(self, sock: socket.socket, key: bytes, value: bytes) -> None:
        reply = ask(sock, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        got = fetch(sock, key)
        if reply == b"SERVER_ERROR out of memory storing object\r\n":
            assert got is None, (key, got)
        else:
            assert reply == b"STORED\r\n" and got in (None, value), (key, value, reply, got)


class Watch:
    def __init__(self, where: Situation, server: Server):
        self.where = where
        self.server = server
        self.bystander = Patient(server, where.wait_s_max)
        self.sock = server.connect(PATIENCE_S)
        self.looks = 0
        self.failure: str | None = None
        self.numbers = self._read()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self.bystander.thread.start()
        self._thread.start()

    def finish(self) -> None:
        self._ending.set()
        self._thread.join(30)
        self.bystander.ending.set()
        self.bystander.thread.join(30)
        for sock in (self.sock, *self.bystander.socks):
            sock.close()

    def problem(self) -> str | None:
        if self.failure is not None:
            return self.failure
        try:
            self.bystander.check()
        except AssertionError as late:
            return f"{self.where.name}: the others: {late}"
        return None

    @property
    def allowed_mib(self) -> float:
        # Clients of the soak, half requests, hostile ones; replies that nobody reads.
        busy = HALF_REQUESTS_MAX + KILLED_CONNECTIONS + 60
        unsent = min(SLOW_READERS_MAX + KILLED_CONNECTIONS, 2 * UNSENT_MIB_MAX * THREADS)
        return allowed_mib(MEGABYTES, idle=CONNECTIONS_MAX + 50, busy=busy, unsent_mib=unsent)

    def _read(self) -> dict[str, int]:
        numbers = parse_stats(ask(self.sock, b"stats\r\n", b"END\r\n"))
        slabs = ask(self.sock, b"stats slabs\r\n", b"END\r\n")
        pages = [line.split()[2] for line in slabs.splitlines() if b"total_pages" in line]
        return {**numbers, "segments_in_all": int(pages[0]) if pages else 0}

    def _run(self) -> None:
        try:
            while not self._ending.wait(LOOK_EVERY_S):
                self._look()
        except (OSError, KeyError, ValueError, Broken) as problem:
            self.failure = f"{self.where.name}: {problem!r}"

    def _look(self) -> None:
        before, self.numbers = self.numbers, self._read()
        check_one(self.numbers, self.where.lossy)
        check_two(before, self.numbers)
        if not is_sanitized(self.server.target.path):
            occupied = max(resident_mib(self.server), peak_mib(self.server))
            if occupied > self.allowed_mib:
                raise Broken(f"{occupied:.1f} MiB are occupied, {self.allowed_mib:.1f} allowed")
        self.looks += 1
