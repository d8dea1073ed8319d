# SPDX-License-Identifier: Apache-2.0
"""What is varied, from where to where: arguments of warpcache-load for each point of each curve."""

from __future__ import annotations

from dataclasses import dataclass

SMALL = ("--sizes", "fixed:16:32")


@dataclass(frozen=True)
class Point:
    """One place on the x axis."""

    x: float
    arguments: tuple[str, ...]
    megabytes: int = 1024
    connections: int = 32  # of the load, at least
    threads: int | None = None  # of the server; None: as the run says


@dataclass(frozen=True)
class Sweep:
    name: str
    axis: str
    title: str
    points: tuple[Point, ...]
    log_x: bool = True


def gets(*arguments: str) -> tuple[str, ...]:
    return ("--sets", "0", *arguments)


def thread_points(*arguments: str) -> tuple[Point, ...]:
    some = gets(*SMALL, "--keys", "1000000", "--connections", "256", *arguments)
    return tuple(Point(threads, some, threads=threads) for threads in (1, 2, 4, 8))


def item_points() -> tuple[Point, ...]:
    """Uniform keys, so that every level of the memory is asked for its share."""
    counts = (10**4, 10**5, 10**6, 10**7, 10**8)
    pipelined = ("--pipeline", "32", "--connections", "64", "--distribution", "uniform")
    return tuple(
        Point(n, gets(*SMALL, *pipelined, "--keys", str(n)), megabytes=max(256, n * 160 >> 20))
        for n in counts
    )


def size_points() -> tuple[Point, ...]:
    pipelined = ("--pipeline", "4", "--connections", "32", "--distribution", "uniform")
    return tuple(
        Point(size, gets("--sizes", f"fixed:20:{size}", "--keys", "500", *pipelined))
        for size in (1, 10, 100, 1000, 10**4, 10**5, 10**6)
    )


def connection_points() -> tuple[Point, ...]:
    return tuple(
        Point(n, gets(*SMALL, "--connections", str(n)), connections=n)
        for n in (1, 10, 100, 300, 1000, 3000, 10**4)
    )


def zipf_points() -> tuple[Point, ...]:
    pipelined = ("--pipeline", "32", "--connections", "64", "--keys", "4000000")
    return tuple(
        Point(s, gets(*SMALL, *pipelined, "--distribution", f"zipf:{s}"))
        for s in (0, 0.2, 0.4, 0.6, 0.8, 0.99, 1.2)
    )


SWEEPS = (
    Sweep("threads", "server threads", "get, one at a time", thread_points()),
    Sweep("threads32", "server threads", "get, pipelined 32", thread_points("--pipeline", "32")),
    Sweep("items", "items", "get, pipelined 32, uniform keys", item_points()),
    Sweep("sizes", "bytes of a value", "get, pipelined 4", size_points()),
    Sweep("connections", "connections", "get, one at a time", connection_points()),
    Sweep("zipf", "Zipf exponent", "get, pipelined 32, 4 M keys", zipf_points(), log_x=False),
)
NAMES = tuple(sweep.name for sweep in SWEEPS)
