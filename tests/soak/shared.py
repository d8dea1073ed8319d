# SPDX-License-Identifier: Apache-2.0
"""Shared by the soak's processes: when memory was flushed and clocks were moved."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass

from harness.patience import PATIENCE_S  # noqa: F401

# PATIENCE_S is the longest wait of well-behaved clients for an answer. That a server answers in
# time is measured by watch.py.
CONTEXT = multiprocessing.get_context("spawn")


class Happening:
    """A total that grows, and is uncertain while it grows: between `begin` and `end`."""

    def __init__(self) -> None:
        self._begun = CONTEXT.Value("q", 0, lock=False)
        self._ended = CONTEXT.Value("q", 0, lock=False)

    def begin(self, amount: int = 1) -> None:
        self._begun.value += amount

    def end(self) -> None:
        self._ended.value = self._begun.value

    def at_most(self) -> int:
        return self._begun.value

    def at_least(self) -> int:
        return self._ended.value


@dataclass(frozen=True)
class Moment:
    """Of an operation: read before it (`start`) or after it (`end`)."""

    time_s: float
    flushes_ended: int
    flushes_begun: int
    shift_ended_s: int
    shift_begun_s: int


@dataclass(frozen=True)
class Situation:
    """A server under soak, as its clients see it. Goes to other processes."""

    name: str
    port: int
    lossy: bool  # it may evict: any miss is explained
    seed: int
    wait_s_max: float  # for an answer, on an idle machine
    flushes: Happening
    clock_shift_s: Happening  # what debugtime has added
    floods: Happening  # of connections: meanwhile no other client is let in

    def now(self) -> Moment:
        return Moment(
            time.monotonic(),
            self.flushes.at_least(),
            self.flushes.at_most(),
            self.clock_shift_s.at_least(),
            self.clock_shift_s.at_most(),
        )
