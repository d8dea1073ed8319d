# SPDX-License-Identifier: Apache-2.0
"""Tables of a server behind Ethernet frames: bench/frames."""

from __future__ import annotations

from rendering.markdown import table
from rendering.registry import block
from rendering.rows import Rows, only, rows, source

FILE = "frames"
ENGINES = {"cpu": "CPU", "cuda": "CUDA, launches", "cuda-persistent": "CUDA, persistent"}


def millions(number: float) -> str:
    return f"{number / 1e6:.1f}"


def us(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def quantiles(row: dict) -> tuple[str, ...]:
    return tuple(us(row[f"p{q}_us"]) for q in (50, 95, 99))


def loss(row: dict) -> str:
    lost = row["loss"] + row["unsent"]
    return "" if lost == 0 else f"{100 * lost:.4f}%"


def rendered(head: tuple[str, ...], lines: list[tuple], found: Rows) -> str:
    return table(head, lines) + "\n\n" + source(found, FILE)


@block("frames-peak")
def peak() -> str:
    found = rows(FILE, part="peak")
    lines = [
        (
            ENGINES[row["engine"]],
            row["server_threads"],
            row["load_threads"],
            f"{row['burst']:,} x {row['depth']}",
            millions(row["requests_per_s"]),
            *quantiles(row),
            f"{row['server_cpu_us']:.3f}",
            f"{row['gpu_watts']:.0f}" if "gpu_watts" in row else "",
        )
        for row in found
    ]
    head = ("engine", "threads", "load", "burst", "M/s", "p50 us", "p95", "p99", "CPU us", "W")
    return rendered(head, lines, found)


@block("frames-rates")
def rates() -> str:
    found = rows(FILE, part="rates")
    lines = [
        (
            ENGINES[row["engine"]],
            f"{row['burst']:,} x {row['depth']}",
            f"{row['rate'] / 1e6:g}",
            millions(row["requests_per_s"]),
            *quantiles(row),
            loss(row),
        )
        for row in found
    ]
    return rendered(("engine", "burst", "M/s asked", "M/s", "p50 us", "p95", "p99", "loss"), lines, found)


def varied(part: str, title: str, name) -> str:
    """A line a variant, with a column for each engine."""
    found = rows(FILE, part=part)
    engines = [engine for engine in ENGINES if any(row["engine"] == engine for row in found)]
    variants = list(dict.fromkeys(name(row) for row in found))
    lines = []
    for variant in variants:
        cells = []
        for engine in engines:
            row = next(row for row in found if name(row) == variant and row["engine"] == engine)
            cells.append(millions(row["keys_per_s"] if part == "multiget" else row["requests_per_s"]))
        lines.append((variant, *cells))
    return rendered((title, *(ENGINES[engine] + ", M/s" for engine in engines)), lines, found)


@block("frames-keys")
def keys() -> str:
    return varied("keys", "bytes of a key", lambda row: row["key_bytes"])


@block("frames-values")
def values() -> str:
    return varied("values", "bytes of a value", lambda row: row["value_bytes"])


@block("frames-multiget")
def multiget() -> str:
    return varied("multiget", "keys a request", lambda row: row["multiget"])


def mixture(row: dict) -> str:
    if row["hits"] < 1:
        return f"{100 * row['hits']:.0f}% hits"
    if row["distribution"] != "uniform":
        return "Zipf 0.99"
    return f"{100 * row['sets']:g}% sets"


@block("frames-mixes")
def mixes() -> str:
    return varied("mixes", "requests", mixture)


# --- For docs/papers.md


def rates_by_key() -> str:
    found = rows(FILE, part="keys", engine="cuda-persistent")
    return ", ".join(millions(row["requests_per_s"]) for row in found) + " M/s"


def at_13() -> str:
    row = only(rows(FILE, part="rates", engine="cuda-persistent", rate=13e6))
    return f"p50 {us(row['p50_us'])} us, p95 {row['p95_us'] / 1e3:.1f} ms at 13 M/s"


def hit_shares() -> str:
    whole = only(rows(FILE, part="keys", engine="cuda-persistent", key_bytes=16))
    part = only(rows(FILE, part="mixes", engine="cuda-persistent", hits=0.85))
    return f"{millions(whole['requests_per_s'])}, {millions(part['requests_per_s'])} M/s"


def few_sets() -> str:
    return f"{millions(only(rows(FILE, part='mixes', engine='cuda-persistent', sets=0.01))['requests_per_s'])} M/s, 1% SET"


def best() -> str:
    found = max(rows(FILE, part="keys") + rows(FILE, part="peak"), key=lambda row: row["requests_per_s"])
    return f"{millions(found['requests_per_s'])} M/s"
