# SPDX-License-Identifier: Apache-2.0
"""The knowledge of a key's only writer: its value, and whether it can be stored."""

from __future__ import annotations

from dataclasses import dataclass

from soak.shared import Moment, Situation

# The server's clock is read once a second and counts whole seconds: what is stored may expire that
# much early. It stays longer where the server does not get to look at its clock.
EARLY_S = 2.0
LATE_S = 15.0


@dataclass
class Known:
    """A key's value after the last command that took effect; None: it is not stored."""

    value: bytes | None = None
    flags: int = 0
    ttl_s: int = 0  # 0: for ever
    # Around the command that stored it, and around the one that gave it its time to live.
    stored: tuple[Moment, Moment] | None = None
    timed: tuple[Moment, Moment] | None = None

    def store(self, value: bytes, flags: int, ttl_s: int, start: Moment, end: Moment) -> None:
        self.value, self.flags, self.ttl_s = value, flags, ttl_s
        self.stored = self.timed = (start, end)

    def change(self, value: bytes, start: Moment, end: Moment) -> None:
        """append, prepend, incr: flags and time to live stay."""
        self.value = value
        self.stored = (start, end)

    def touch(self, ttl_s: int, start: Moment, end: Moment) -> None:
        self.ttl_s = ttl_s
        self.timed = (start, end)

    def forget(self) -> None:
        self.value = None


def may_be_absent(known: Known, where: Situation, start: Moment, end: Moment) -> bool:
    """Whether a miss between the two moments can be explained."""
    if known.value is None or where.lossy:
        return True
    if end.flushes_begun > known.stored[0].flushes_ended:
        return True
    if known.ttl_s == 0:
        return False
    before = known.timed[0]
    longest = end.time_s - before.time_s + end.shift_begun_s - before.shift_ended_s
    return longest >= known.ttl_s - EARLY_S


def must_be_absent(known: Known, where: Situation, start: Moment, end: Moment) -> bool:
    """Whether a hit between the two moments is wrong, whatever the value."""
    if known.value is None or start.flushes_ended > known.stored[1].flushes_begun:
        return True
    if known.ttl_s == 0:
        return False
    after = known.timed[1]
    shortest = start.time_s - after.time_s + start.shift_ended_s - after.shift_begun_s
    return shortest > known.ttl_s + LATE_S
