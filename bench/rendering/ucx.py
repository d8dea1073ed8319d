# SPDX-License-Identifier: Apache-2.0
"""Tables of active messages beside sockets (bench/ucx)."""

from __future__ import annotations

from rendering.markdown import per_second, table, three
from rendering.registry import block
from rendering.rows import only, rows, source

FILE = "ucx"
WAYS = ("memcached tcp", "memcached unix", "tcp", "unix", "ucx tcp", "ucx shm")


@block("ucx-latency")
def latency() -> str:
    found = rows(FILE, clients=1)
    lines = [
        (f"{row['operation']}, {row['bytes']:,} B", *(cell(row["operation"], row["bytes"], way) for way in WAYS))
        for row in found
        if row["way"] == WAYS[0]
    ]
    return table(["p50 (best), us", *WAYS], lines) + "\n\n" + source(found, FILE)


def cell(operation: str, size: int, way: str) -> str:
    row = only(rows(FILE, clients=1, operation=operation, bytes=size, way=way))
    return f"{three(row['p50_us'])} ({three(row['best_p50_us'])})"


@block("ucx-rate")
def rate() -> str:
    found = [row for row in rows(FILE) if row["clients"] > 1]
    lines = [
        (
            f"{row['clients']} clients, {row['bytes']:,} B",
            *(per_second(only(found, clients=row["clients"], bytes=row["bytes"], way=way)["rate"]) for way in WAYS),
        )
        for row in found
        if row["way"] == WAYS[0]
    ]
    return table(["gets/s", *WAYS], lines) + "\n\n" + source(found, FILE)
