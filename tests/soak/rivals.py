# SPDX-License-Identifier: Apache-2.0
"""Several connections that update one key at the same time: no update is lost or applied twice."""

from __future__ import annotations

import random

from soak.channel import Channel, Wrong
from soak.knowledge import Known, may_be_absent
from soak.shared import Moment, Situation

CONNECTIONS = 6
ROUNDS_OF_ONE = 5  # commands of a connection in a round
OUT_OF_MEMORY = b"SERVER_ERROR out of memory"


class Rivals:
    def __init__(self, where: Situation, number: int):
        self.where = where
        self.chance = random.Random(f"{where.seed}/{where.name}/rivals{number}")
        self.key = b"rivals/%d" % number
        self.channels = [Channel(where.port) for _ in range(CONNECTIONS)]
        self.operations = 0

    def close(self) -> None:
        for channel in self.channels:
            channel.close()

    def step(self) -> None:
        contest = self.chance.choice([self._count, self._swap, self._add, self._append])
        contest()

    def _ask(self, request: bytes) -> bytes:
        self.channels[0].send(request)
        return self.channels[0].line()

    def _start(self, value: bytes) -> Known | None:
        """Gives the key a value. None: there is no memory."""
        start = self.where.now()
        reply = self._ask(b"set %s 0 0 %d\r\n%s\r\n" % (self.key, len(value), value))
        if reply.startswith(OUT_OF_MEMORY):
            return None
        if reply != b"STORED":
            raise Wrong(f"{reply!r} for a set")
        known = Known()
        known.store(value, 0, 0, start, self.where.now())
        return known

    def _at_once(self, requests: list[bytes], rounds: int = 1) -> list[list[bytes]]:
        """Each connection's replies. All requests are on the way before any reply is read."""
        for channel, request in zip(self.channels, requests, strict=True):
            channel.send(request)
        replies = [[channel.line() for _ in range(rounds)] for channel in self.channels]
        self.operations += len(requests) * rounds
        return replies

    def _explain_losses(self, known: Known, replies: list[bytes], lost: bytes) -> list[bytes]:
        """The replies without those of a key that has gone, for which there must be a reason."""
        now: Moment = self.where.now()
        if lost in replies and not may_be_absent(known, self.where, now, now):
            raise Wrong(f"{self.key!r} is lost: {replies}")
        return [r for r in replies if r != lost and not r.startswith(OUT_OF_MEMORY)]

    def _count(self) -> None:
        base = self.chance.randrange(1 << 40)
        known = self._start(b"%d" % base)
        if known is None:
            return
        each = self._at_once([b"incr %s 1\r\n" % self.key * ROUNDS_OF_ONE] * CONNECTIONS, 5)
        numbers = self._explain_losses(known, sum(each, []), b"NOT_FOUND")
        if sorted(map(int, numbers)) != list(range(base + 1, base + 1 + len(numbers))):
            raise Wrong(f"counting from {base} gave {each}")
        for replies in each:
            own = [int(reply) for reply in replies if reply.isdigit()]
            if own != sorted(own):
                raise Wrong(f"out of order on a connection: {replies}")

    def _swap(self) -> None:
        known = self._start(b"old")
        if known is None:
            return
        self.channels[0].send(b"gets %s\r\n" % self.key)
        hit = self.channels[0].text_get(self.key)
        if hit is None:
            self._explain_losses(known, [b"END"], b"END")
            return
        requests = [b"cas %s 0 0 1 %d\r\n%d\r\n" % (self.key, hit.cas, i) for i in range(6)]
        replies = [reply for (reply,) in self._at_once(requests)]
        rest = self._explain_losses(known, replies, b"NOT_FOUND")
        # All after the winner are refused; without a winner all are refused, for other reasons.
        if rest.count(b"STORED") != (1 if rest else 0) or set(rest) - {b"STORED", b"EXISTS"}:
            raise Wrong(f"{CONNECTIONS} swaps with one id gave {replies}")
        if b"STORED" in replies:
            self._check_winner(known, b"%d" % replies.index(b"STORED"))

    def _check_winner(self, known: Known, value: bytes) -> None:
        self.channels[0].send(b"get %s\r\n" % self.key)
        hit = self.channels[0].text_get(self.key)
        if hit is None:
            self._explain_losses(known, [b"END"], b"END")
        elif hit.value != value:
            raise Wrong(f"{hit.value!r} is there, but {value!r} was stored")

    def _add(self) -> None:
        start = self.where.now()
        self._ask(b"delete %s\r\n" % self.key)
        requests = [b"add %s 0 0 1\r\n%d\r\n" % (self.key, i) for i in range(CONNECTIONS)]
        replies = [reply for (reply,) in self._at_once(requests)]
        rest = [reply for reply in replies if not reply.startswith(OUT_OF_MEMORY)]
        known = Known()
        known.store(b"", 0, 0, start, self.where.now())
        winners = rest.count(b"STORED")
        if set(rest) - {b"STORED", b"NOT_STORED"} or (rest and winners == 0):
            raise Wrong(f"{CONNECTIONS} adds gave {replies}")
        now = self.where.now()
        if winners > 1 and not may_be_absent(known, self.where, now, now):
            raise Wrong(f"{CONNECTIONS} adds gave {replies}")
        if winners == 1:
            self._check_winner(known, b"%d" % replies.index(b"STORED"))

    def _append(self) -> None:
        known = self._start(b"-")
        if known is None:
            return
        requests = [b"append %s 0 0 2\r\n%d,\r\n" % (self.key, i) for i in range(CONNECTIONS)]
        replies = [reply for (reply,) in self._at_once(requests)]
        self._explain_losses(known, replies, b"NOT_STORED")
        self.channels[0].send(b"get %s\r\n" % self.key)
        hit = self.channels[0].text_get(self.key)
        if hit is None:
            self._explain_losses(known, [b"END"], b"END")
            return
        done = [b"%d" % i for i, reply in enumerate(replies) if reply == b"STORED"]
        if hit.value[:1] != b"-" or sorted(hit.value[1:].split(b",")[:-1]) != done:
            raise Wrong(f"appended {done}, got {hit.value!r}")
