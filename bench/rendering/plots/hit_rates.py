# SPDX-License-Identifier: Apache-2.0
"""hash-sim's figures, with the papers' points where they state numbers."""

from __future__ import annotations

from rendering.hit_rates import MILLION, PAPER_WAYS, SCALE, hit_rates, miss_bars
from rendering.plots.canvas import pyplot
from rendering.rows import Rows, pick

KEYS = 10 * MILLION
PAPER = "dissertation 4.4.1"
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
TITLES = {
    "zipf": f"Zipfian: hit rate by hash table ({PAPER}, figure 4.7a)",
    "latest-updates": f"Latest, updates: hit rate by hash table ({PAPER}, figure 4.7b)",
    "latest": "Latest, inserts: hit rate by hash table (YCSB's workload D)",
    "uniform": f"Uniform random: hit rate by hash table ({PAPER}, figure 4.7c)",
}


def tables(found: Rows):
    """Figure 4.7: hit rates, and each table's share of chaining's hits."""
    full = hit_rates(pick(found, experiment="tables"))
    small = hit_rates(pick(found, experiment="tables-small"))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.5, 3.4))
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
    figure.suptitle(TITLES[found[0]["stream"]], fontsize=10)
    return figure


def ways(found: Rows):
    """Figure 4.8."""
    figure, axes = pyplot.subplots(figsize=(6, 3.8))
    for cache, points in hit_rates(found).items():
        x = sorted(points)
        style = {"color": "black", "linewidth": 2} if cache == "chained:lru" else {}
        name = "hash chaining" if cache == "chained:lru" else f"{cache.split(':')[1]} ways"
        y = [100 * (1 - points[n]) for n in x]
        axes.plot([n / MILLION for n in x], y, "o-", label=name, **style)
    for ways, miss in PAPER_WAYS.items():
        axes.plot(8, 100 * miss, "k*", markersize=13, fillstyle="none")
        axes.annotate(
            f"paper: {100 * miss:.1f}% with {ways} way{'s' if ways > 1 else ''}",
            (8, 100 * miss),
            xytext=(8.4, 100 * miss + 1.2),
            fontsize=8,
        )
    axes.axvline(KEYS / MILLION, linestyle=":", color="gray")
    axes.set(
        xlabel="entries, millions (10 million keys)",
        ylabel="miss rate, %",
        title=f"Miss rate by associativity ({PAPER}, figure 4.8)",
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def patterns(found: Rows, title: str):
    """A panel a pattern; all have the caches in the same order, so that they can share their labels."""
    caches, bars = miss_bars(found, "chained:lru")
    figure, all_axes = pyplot.subplots(1, len(bars), figsize=(2.3 * len(bars), 3.2), sharey=True)
    for axes, (pattern, shares) in zip(all_axes, bars.items()):
        axes.barh(range(len(caches)), shares, color="#4878a8")
        axes.axvline(1.0, color="gray", linestyle=":")
        base = pick(found, pattern=pattern, cache="chained:lru")[-1]["miss_ratio"]
        axes.set_title(f"{pattern}\n({100 * base:.1f}% misses with LRU)", fontsize=8)
    all_axes[0].set_yticks(range(len(caches)), caches, fontsize=7)
    all_axes[0].invert_yaxis()
    figure.suptitle(title, fontsize=9)
    return figure


def evictions(found: Rows):
    return patterns(found, "Misses, of those of LRU over all items: 20,000 entries for 200,000 keys")


def sized(found: Rows):
    return patterns(found, "Misses, of those of LRU over all items: 64 MiB, sizes of ETC")


STREAM_LINES = {
    "store": {"color": "black", "linewidth": 2},
    "chained:lru": {"color": "tab:gray"},
    "chained:s3fifo": {"color": "tab:blue"},
    "chained:w-tinylfu": {"color": "tab:orange"},
    "chained:lirs": {"color": "tab:green"},
    "chained:gdsf": {"color": "tab:red"},
    "chained:farthest": {"color": "tab:purple"},
}


def streams(found: Rows):
    """Hits by share of the footprint, a panel a stream."""
    names = list(dict.fromkeys(row["stream"] for row in found))
    figure, grid = pyplot.subplots(2, 3, figsize=(9.5, 5.6))
    for axes, stream in zip(grid.flat, names):
        for cache, style in STREAM_LINES.items():
            # A later row replaces an earlier one.
            points = {row["share"]: row["miss_ratio"] for row in pick(found, stream=stream, cache=cache)}
            hits = [100 - 100 * points[share] for share in sorted(points)]
            axes.plot([100 * share for share in sorted(points)], hits, "o-", ms=3, label=cache, **style)
        axes.set_xscale("log")
        axes.set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])
        axes.set_title(stream, fontsize=9)
        axes.grid(alpha=0.3)
    for axes in grid[:, 0]:
        axes.set_ylabel("hits, %")
    for axes in grid[1]:
        axes.set_xlabel("capacity, % of the footprint")
    grid[0][0].legend(fontsize=7)
    return figure
