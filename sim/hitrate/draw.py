# SPDX-License-Identifier: Apache-2.0
"""Draws hash-sim's figures from its JSON lines, with the papers' points where they state numbers."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "warpcache"
from matplotlib import pyplot

from experiments import KEYS, MILLION, SCALE

PAPER = "dissertation 4.4.1"
# Its two stated points of figure 4.8, both at 8 million entries: miss rates by ways.
PAPER_WAYS = {1: 0.212, 16: 0.104}
NAMES = {
    "chained:lru": "hash chaining, global LRU",
    "set:16:lru": "16-way sets",
    "hopscotch": "hopscotch (16, 512)",
    "strided": "strided probing (16, 4)",
    "cuckoo": "cuckoo (2 choices, 512)",
    "cuckoo:4": "cuckoo, buckets of 4",
    "two-generations": "two generations (model)",
    "store": "warpcached's store",
}
TITLES = {"zipf": "Zipfian", "latest": "Latest", "uniform": "Uniform random"}


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def select(rows: list[dict], **fields) -> list[dict]:
    return [row for row in rows if all(row.get(k) == v for k, v in fields.items())]


def hit_rates(rows: list[dict], size: str = "capacity") -> dict[str, dict[int, float]]:
    """By cache, then by size. A later row replaces an earlier one."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows:
        found[row["cache"]][row[size]] = 1.0 - row["miss_ratio"]
    return found


def save(figure, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    pyplot.close(figure)


def draw_tables(rows: list[dict], stream: str, letter: str, folder: Path) -> None:
    """Figure 4.7: hit rates, and each table's share of chaining's hits."""
    full = hit_rates(select(rows, experiment="tables", stream=stream))
    small = hit_rates(select(rows, experiment="tables-small", stream=stream))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for cache, points in full.items():
        x = sorted(points)
        left.plot([n / MILLION for n in x], [100 * points[n] for n in x], "o-", label=NAMES[cache])
        if cache != "chained:lru":
            shares = [100 * points[n] / full["chained:lru"][n] for n in x]
            right.plot([n / MILLION for n in x], shares, "o-", label=NAMES[cache])
    for cache in ("cuckoo", "cuckoo:4"):
        x = sorted(small.get(cache, ()))
        shares = [100 * small[cache][n] / small["chained:lru"][n] for n in x]
        scaled = [n * SCALE / MILLION for n in x]
        right.plot(scaled, shares, "s--", label=f"{NAMES[cache]}, 1:{SCALE}")
    left.set_ylabel("hit rate, %")
    right.set_ylabel("of chaining's hit rate, %")
    for axes in (left, right):
        axes.set_xlabel("entries, millions (10 million keys)")
        axes.axvline(KEYS / MILLION, linestyle=":", color="gray")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(f"{TITLES[stream]}: hit rate by hash table ({PAPER}, figure 4.7{letter})")
    save(figure, folder, f"hash-sim-tables-{stream}")


def draw_ways(rows: list[dict], folder: Path) -> None:
    """Figure 4.8."""
    found = hit_rates(select(rows, experiment="ways"))
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for cache, points in found.items():
        x = sorted(points)
        style = {"color": "black", "linewidth": 2} if cache == "chained:lru" else {}
        name = "hash chaining" if cache == "chained:lru" else f"{cache.split(':')[1]} ways"
        y = [100 * (1 - points[n]) for n in x]
        axes.plot([n / MILLION for n in x], y, "o-", label=name, **style)
    for ways, miss in PAPER_WAYS.items():
        axes.plot(8, 100 * miss, "k*", markersize=13, fillstyle="none")
        axes.annotate(f"paper: {100 * miss:.1f}% with {ways} way{'s' if ways > 1 else ''}",
                      (8, 100 * miss), xytext=(8.4, 100 * miss + 1.2), fontsize=8)
    axes.axvline(KEYS / MILLION, linestyle=":", color="gray")
    axes.set(xlabel="entries, millions (10 million keys)", ylabel="miss rate, %",
             title=f"Miss rate by associativity ({PAPER}, figure 4.8)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    save(figure, folder, "hash-sim-ways")


def draw_bars(axes, values: dict[str, float], base: str) -> None:
    """Misses of each cache, as a share of those of `base`."""
    names = list(values)
    axes.barh(range(len(names)), [values[name] / values[base] for name in names], color="#4878a8")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.axvline(1.0, color="gray", linestyle=":")
    axes.invert_yaxis()


def draw_patterns(rows: list[dict], experiment: str, size: str, value: int, title: str,
                  folder: Path) -> None:
    mine = [row for row in select(rows, experiment=experiment) if row[size] == value]
    patterns = list(dict.fromkeys(row["pattern"] for row in mine))
    if not patterns:
        return
    figure, all_axes = pyplot.subplots(1, len(patterns), figsize=(3.1 * len(patterns), 4.2),
                                       sharey=True)
    for axes, pattern in zip(all_axes, patterns):
        misses = {row["cache"]: row["miss_ratio"] for row in select(mine, pattern=pattern)}
        draw_bars(axes, misses, "chained:lru")
        axes.set_title(f"{pattern}\n({100 * misses['chained:lru']:.1f}% misses with LRU)",
                       fontsize=8)
    figure.suptitle(title, fontsize=10)
    save(figure, folder, f"hash-sim-{experiment}")


def draw_all(path: Path, folder: Path) -> None:
    rows = read_rows(path)
    for letter, stream in zip("abc", TITLES):
        draw_tables(rows, stream, letter, folder)
    draw_ways(rows, folder)
    draw_patterns(rows, "evictions", "capacity", 20_000,
                  "Misses, of those of LRU over all items: 20,000 entries for 200,000 keys", folder)
    draw_patterns(rows, "sized", "memory", 64 << 20,
                  "Misses, of those of LRU over all items: 64 MiB, sizes of ETC", folder)
