# SPDX-License-Identifier: Apache-2.0
"""The results of one server divided by those of the other, of rows that were measured interleaved."""

from __future__ import annotations

import statistics

SERVERS = ("memcached", "warpcached")
FLOOR = "socket_floor"  # the least server, measured where a workload has a goal for it


def ratios(rows: list[dict], name: str, base: str = SERVERS[0]) -> list[float]:
    """warpcached's result divided by that of `base`, round by round."""
    theirs, ours = ([row[name] for row in rows if row["server"] == server] for server in (base, SERVERS[1]))
    return [mine / other for other, mine in zip(theirs, ours) if other]


def median(rows: list[dict], server: str, name: str) -> float:
    return statistics.median(row[name] for row in rows if row["server"] == server)
