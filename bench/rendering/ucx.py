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
    row = one(operation, size, way)
    return f"{three(row['p50_us'])} ({three(row['best_p50_us'])})"


def one(operation: str, size: int, way: str) -> dict:
    return only(rows(FILE, clients=1, operation=operation, bytes=size, way=way))


def gain() -> str:
    """Of a small get, best round against best round."""
    times = one("get", 4, "tcp")["best_p50_us"] / one("get", 4, "ucx shm")["best_p50_us"]
    return f"shm {times:.0f} times below TCP"


def get_4k() -> str:
    memory, tcp = (one("get", 4096, way)["best_p50_us"] for way in ("ucx shm", "ucx tcp"))
    return f"shm {three(memory)}, TCP {three(tcp)} us"


def best_rate() -> str:
    row = only(rows(FILE, clients=16, operation="get", bytes=4, way="ucx shm"))
    return f"shm {row['rate'] / 1e6:.1f} M/s"


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
