# SPDX-License-Identifier: Apache-2.0
"""The results of one server divided by those of the other, of rows that were measured interleaved."""

from __future__ import annotations

import statistics

SERVERS = ("memcached", "warpcached")


def ratios(rows: list[dict], name: str) -> list[float]:
    """warpcached's result divided by memcached's, round by round."""
    of = {server: [row[name] for row in rows if row["server"] == server] for server in SERVERS}
    return [ours / theirs for theirs, ours in zip(*(of[server] for server in SERVERS)) if theirs]


def median(rows: list[dict], server: str, name: str) -> float:
    return statistics.median(row[name] for row in rows if row["server"] == server)
