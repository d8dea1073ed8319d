# SPDX-License-Identifier: Apache-2.0
"""A client whose keys no other client writes: it knows every correct reply."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable

from faults.support import packet, pattern
from harness.channels import UDP_HEADER

from soak.channel import Channel, Hit, Wrong
from soak.knowledge import Known, may_be_absent, must_be_absent
from soak.shared import Moment, Situation

KEYS = 300
NUMBERS = 40  # of these, hold numbers
PIPELINE_MAX = 12
LARGE_MAX = 300_000
OUT_OF_MEMORY = b"SERVER_ERROR out of memory"
UDP_WAIT_S = 0.2

# Sends nothing itself: a request, and what to do with its reply.
Command = tuple[bytes, Callable[[Moment], None]]


class Owner:
    def __init__(self, where: Situation, number: int):
        self.where = where
        self.chance = random.Random(f"{where.seed}/{where.name}/{number}")
        self.keys = [b"own/%d/%d" % (number, i) for i in range(KEYS)]
        self.known = {key: Known() for key in self.keys}
        self.text = Channel(where.port)
        self.binary = Channel(where.port)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.settimeout(UDP_WAIT_S)
        self.udp.connect(("127.0.0.1", where.port))
        self.written = 0
        self.operations = 0
        self.hits = 0
        self.refused = 0  # for want of memory

    def close(self) -> None:
        self.text.close()
        self.binary.close()
        self.udp.close()

    def step(self) -> None:
        """A pipeline of random commands, each on another key, or one of the other kinds."""
        kind = self.chance.random()
        if kind < 0.7:
            keys = self.chance.sample(self.keys, self.chance.randint(1, PIPELINE_MAX))
            self._pipeline([self._any_command(key) for key in keys])
        elif kind < 0.8:
            self._swap(self.chance.choice(self.keys[NUMBERS:]))
        elif kind < 0.95:
            self._say_binary(self.chance.choice(self.keys[NUMBERS:]))
        else:
            self._ask_udp(self.chance.choice(self.keys))

    def verify(self) -> None:
        """Reads everything."""
        for key in self.keys:
            self._pipeline([self._get(key)])

    # --- Pipelines of text and meta commands

    def _pipeline(self, commands: list[Command]) -> None:
        start = self.where.now()
        self.text.send(b"".join(request for request, _ in commands))
        for _, on_reply in commands:
            on_reply(start)
        self.operations += len(commands)

    def _any_command(self, key: bytes) -> Command:
        if self.chance.random() < 0.45:
            return self._get(key)
        if key in self.keys[:NUMBERS]:
            return self._set_number(key) if self.known[key].value is None else self._incr(key)
        makers = (self._set, self._set, self._set, self._add, self._append, self._touch)
        return self.chance.choice((*makers, self._delete, self._replace))(key)

    def _new_value(self) -> bytes:
        self.written += 1
        kind = self.chance.random()
        most = 200 if kind < 0.6 else 8000 if kind < 0.9 else 60_000 if kind < 0.98 else LARGE_MAX
        return pattern(self.written, self.chance.randint(0, most))

    def _new_ttl(self) -> int:
        return self.chance.choice([0, 0, 0, 0, 100, 1000, 3, 6, 12])

    def _observe(self, key: bytes, absent: bool, start: Moment) -> Moment:
        """Raises unless the key may be there, or absent, as it has just been found."""
        end = self.where.now()
        known = self.known[key]
        if absent:
            if not may_be_absent(known, self.where, start, end):
                raise Wrong(f"{key!r} is lost: {describe(known)}, {start}, {end}")
            known.forget()
        elif must_be_absent(known, self.where, start, end):
            raise Wrong(f"{key!r} came back: {describe(known)}, {start}, {end}")
        return end

    def _check_hit(self, key: bytes, hit: Hit | None, start: Moment) -> None:
        self._observe(key, hit is None, start)
        known = self.known[key]
        if hit is None:
            return
        self.hits += 1
        if hit.value != known.value or hit.flags != known.flags:
            got = f"{hit.flags} {hit.value[:60]!r} of {len(hit.value)} bytes"
            raise Wrong(f"{key!r} is {got}, and should be {describe(known)}")

    def _get(self, key: bytes) -> Command:
        how = self.chance.randrange(4)
        if how == 0:
            return b"mg %s v f c\r\n" % key, lambda start: self._check_hit(
                key, self.text.meta_get(), start
            )
        if how == 1 and self.known[key].value is not None:
            return self._get_and_touch(key)
        return (b"get %s\r\n", b"gets %s\r\n")[how % 2] % key, lambda start: self._check_hit(
            key, self.text.text_get(key), start
        )

    def _get_and_touch(self, key: bytes) -> Command:
        ttl_s = self._new_ttl()

        def on_reply(start: Moment) -> None:
            hit = self.text.text_get(key)
            self._check_hit(key, hit, start)
            if hit is not None:
                self.known[key].touch(ttl_s, start, self.where.now())

        return b"gat %d %s\r\n" % (ttl_s, key), on_reply

    def _storing(self, line: bytes, key: bytes, value: bytes, flags: int, ttl_s: int) -> Command:
        """A set, add or replace."""
        word = line.split(b" ")[0]

        def on_reply(start: Moment) -> None:
            reply = self.text.line()
            stored = reply in (b"STORED", b"HD")
            self._take_refusal(key, reply, word in (b"set", b"ms"))
            if stored or reply in (b"NOT_STORED", b"NS"):
                if word == b"add":
                    self._observe(key, stored, start)
                if word == b"replace":
                    self._observe(key, not stored, start)
            elif not reply.startswith(OUT_OF_MEMORY):
                raise Wrong(f"{reply!r} for {line!r}")
            if stored:
                self.known[key].store(value, flags, ttl_s, start, self.where.now())
            elif word in (b"set", b"ms") and not reply.startswith(OUT_OF_MEMORY):
                raise Wrong(f"{reply!r} for {line!r}")

        return line + value + b"\r\n", on_reply

    def _take_refusal(self, key: bytes, reply: bytes, drops: bool) -> None:
        """Without memory only a set has an effect: the old value goes."""
        if reply.startswith(OUT_OF_MEMORY):
            self.refused += 1
            if drops:
                self.known[key].forget()

    def _set(self, key: bytes) -> Command:
        value, flags, ttl_s = self._new_value(), self.chance.getrandbits(16), self._new_ttl()
        line = b"set %s %d %d %d\r\n" % (key, flags, ttl_s, len(value))
        if self.chance.random() < 0.3:
            line = b"ms %s %d F%d T%d\r\n" % (key, len(value), flags, ttl_s)
        return self._storing(line, key, value, flags, ttl_s)

    def _set_number(self, key: bytes) -> Command:
        value = b"%d" % self.chance.randrange(1 << 32)
        return self._storing(b"set %s 0 0 %d\r\n" % (key, len(value)), key, value, 0, 0)

    def _add(self, key: bytes) -> Command:
        value = self._new_value()
        return self._storing(b"add %s 7 0 %d\r\n" % (key, len(value)), key, value, 7, 0)

    def _replace(self, key: bytes) -> Command:
        value = self._new_value()
        return self._storing(b"replace %s 8 0 %d\r\n" % (key, len(value)), key, value, 8, 0)

    def _changing(self, request: bytes, key: bytes, changed: bytes, done: bytes) -> Command:
        """append, prepend, incr: `done` if the key was there."""

        def on_reply(start: Moment) -> None:
            reply = self.text.line()
            self._take_refusal(key, reply, False)
            if reply in (done, b"NOT_STORED", b"NOT_FOUND"):
                end = self._observe(key, reply != done, start)
                if reply == done:
                    self.known[key].change(changed, start, end)
            elif not reply.startswith(OUT_OF_MEMORY):
                raise Wrong(f"{reply!r} for {request[:80]!r}: {describe(self.known[key])}")

        return request, on_reply

    def _append(self, key: bytes) -> Command:
        old = self.known[key].value or b""
        if len(old) > LARGE_MAX:
            return self._set(key)
        self.written += 1
        part = pattern(self.written, self.chance.randint(0, 100))
        word = self.chance.choice([b"append", b"prepend"])
        request = b"%s %s 0 0 %d\r\n%s\r\n" % (word, key, len(part), part)
        return self._changing(
            request, key, old + part if word == b"append" else part + old, b"STORED"
        )

    def _incr(self, key: bytes) -> Command:
        by = self.chance.randrange(1000)
        number = b"%d" % (int(self.known[key].value) + by)
        return self._changing(b"incr %s %d\r\n" % (key, by), key, number, number)

    def _touch(self, key: bytes) -> Command:
        ttl_s = self._new_ttl()

        def on_reply(start: Moment) -> None:
            reply = self.text.line()
            if reply not in (b"TOUCHED", b"NOT_FOUND"):
                raise Wrong(f"{reply!r} for a touch")
            end = self._observe(key, reply != b"TOUCHED", start)
            if reply == b"TOUCHED":
                self.known[key].touch(ttl_s, start, end)

        return b"touch %s %d\r\n" % (key, ttl_s), on_reply

    def _delete(self, key: bytes) -> Command:
        def on_reply(start: Moment) -> None:
            reply = self.text.line()
            if reply not in (b"DELETED", b"NOT_FOUND"):
                raise Wrong(f"{reply!r} for a delete")
            self._observe(key, reply != b"DELETED", start)
            self.known[key].forget()

        return b"delete %s\r\n" % key, on_reply

    # --- The others

    def _swap(self, key: bytes) -> None:
        """cas with the id that was read takes effect; with another id it does not."""
        seen: list[Hit | None] = []

        def on_gets(start: Moment) -> None:
            seen.append(self.text.text_get(key))
            self._check_hit(key, seen[0], start)

        self._pipeline([(b"gets %s\r\n" % key, on_gets)])
        if seen[0] is None:
            return
        right = self.chance.random() < 0.7
        cas = seen[0].cas + (0 if right else 1)
        value = self._new_value()
        line = b"cas %s 9 0 %d %d\r\n" % (key, len(value), cas)

        def on_cas(start: Moment) -> None:
            reply = self.text.line()
            self._take_refusal(key, reply, False)
            if reply == (b"STORED" if right else b"EXISTS"):
                end = self._observe(key, False, start)
                if right:
                    self.known[key].store(value, 9, 0, start, end)
            elif reply == b"NOT_FOUND":
                self._observe(key, True, start)
            elif not reply.startswith(OUT_OF_MEMORY):
                raise Wrong(f"{reply!r} for {line!r}, right: {right}")

        self._pipeline([(line + value + b"\r\n", on_cas)])

    def _say_binary(self, key: bytes) -> None:
        start = self.where.now()
        choice = self.chance.random()
        if choice < 0.5:
            self.binary.send(packet("get", key))
            _, status, cas, extras, value = self.binary.packet()
            if status not in (0, 1):
                raise Wrong(f"status {status} for a get")
            hit = Hit(value, struct.unpack(">I", extras)[0], cas) if status == 0 else None
            self._check_hit(key, hit, start)
        elif choice < 0.9:
            value, ttl_s = self._new_value(), self._new_ttl()
            self.binary.send(packet("set", key, value, struct.pack(">II", 3, ttl_s)))
            _, status, _, _, _ = self.binary.packet()
            if status == 0:
                self.known[key].store(value, 3, ttl_s, start, self.where.now())
            elif status == 0x82:
                self._take_refusal(key, OUT_OF_MEMORY, True)
            else:
                raise Wrong(f"status {status} for a set")
        else:
            self.binary.send(packet("delete", key))
            _, status, _, _, _ = self.binary.packet()
            if status not in (0, 1):
                raise Wrong(f"status {status} for a delete")
            self._observe(key, status == 1, start)
            self.known[key].forget()
        self.operations += 1

    def _ask_udp(self, key: bytes) -> None:
        """A datagram may be lost: only what comes is looked at, and only if it is one datagram."""
        start = self.where.now()
        number = self.operations & 0xFFFF
        try:
            self.udp.send(UDP_HEADER.pack(number, 0, 1, 0) + b"get %s\r\n" % key)
            answer = self.udp.recv(65536)
        except OSError:
            return
        came, _, total, _ = UDP_HEADER.unpack_from(answer)
        if came == number and total == 1:
            known = self.known[key]
            self._observe(key, answer[8:] == b"END\r\n", start)
            value = known.value or b""
            whole = b"VALUE %s %d %d\r\n%s\r\nEND\r\n" % (key, known.flags, len(value), value)
            if answer[8:] not in (b"END\r\n", whole):
                raise Wrong(f"{answer[:80]!r} by UDP, and should be {describe(known)}")
        self.operations += 1


def describe(known: Known) -> str:
    if known.value is None:
        return "absent"
    text = f"{known.flags} {known.value[:60]!r} of {len(known.value)} bytes, ttl {known.ttl_s}"
    return f"{text}, stored {known.stored}, timed {known.timed}"
