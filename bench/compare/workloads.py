# SPDX-License-Identifier: Apache-2.0
"""The workloads: arguments of warpcache-load, and the goals."""

from __future__ import annotations

from dataclasses import dataclass

CONNECTIONS = 50
SMALL_ITEMS = ("--sizes", "fixed:16:32", "--keys", "100000")


@dataclass(frozen=True)
class Workload:
    name: str
    what: str
    arguments: tuple[str, ...]
    goal: float | None = None  # warpcached's CPU time per request over memcached's, at most
    floor_goal: float | None = None  # the same over that of the least server on sockets
    keys: int = 1  # of each request: CPU time is given for a key
    udp: bool = False
    connections: int = CONNECTIONS
    rate_share: float | None = None  # open loop, at this share of memcached's peak in `one`


def gets(*arguments: str) -> tuple[str, ...]:
    return ("--connections", str(CONNECTIONS), "--sets", "0", *SMALL_ITEMS, *arguments)


WORKLOADS = (
    Workload("one", "get, one at a time", gets(), goal=0.85, floor_goal=1.05),
    Workload("get32", "get, pipelined 32", gets("--pipeline", "32"), goal=0.35, floor_goal=1.2),
    Workload("mg32", "mg, pipelined 32", gets("--pipeline", "32", "--meta"), goal=0.35, floor_goal=1.3),
    Workload("multiget", "get of 100 keys", gets("--multiget", "100"), goal=0.35, floor_goal=1.4, keys=100),
    Workload("set32", "set, pipelined 32", gets("--pipeline", "32", "--sets", "1"), goal=0.45, floor_goal=1.5),
    Workload("udp", "get over UDP, 64 sockets", gets("--udp", "-c", "64"), goal=0.5, floor_goal=0.65, udp=True),
    Workload("paced", "get at 70% of memcached's peak", gets(), rate_share=0.7),
    Workload(
        "aside",
        "look-aside, ETC sizes, small cache",
        (
            *("--connections", str(CONNECTIONS), "--pipeline", "8", "--look-aside"),
            *("--sets", "0.05", "--sizes", "etc", "--keys", "1000000"),
        ),
    ),
)
NAMES = tuple(workload.name for workload in WORKLOADS)
