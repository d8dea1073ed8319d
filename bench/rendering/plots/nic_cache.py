# SPDX-License-Identifier: Apache-2.0
"""nic-cache-sim's figures. Black diamonds are the paper's values, where its text states them."""

from __future__ import annotations

from rendering.nic_cache import PAPER_ENTRY_BITS, PARTS, RECORDS, of
from rendering.plots.canvas import panels as grid
from rendering.rows import Rows, pick

COLORS = {"a": "tab:blue", "b": "tab:orange", "c": "tab:green", "d": "tab:red"}
WAY_STYLES = {1: ":", 2: "-.", 4: "--", 8: "-"}
PAPER = {"color": "black", "marker": "D", "linestyle": "none", "zorder": 5}
SIZE_LABELS = [f"1/{part}" for part in PARTS]
SIZES = [1 / part for part in PARTS]


def curve(rows: Rows, x: str, y: str) -> tuple[list[float], list[float]]:
    points = sorted((row.get(x, 0), row.get(y, 0)) for row in rows)
    return [point[0] for point in points], [point[1] for point in points]


def panels(count: int, width: float = 3.0, height: float = 2.9, share_y: bool = True):
    return grid(count, width, height, sharey=share_y)


def size_axis(panel) -> None:
    panel.set_xscale("log", base=2)
    panel.set_xticks(SIZES, SIZE_LABELS)
    panel.set_xlabel("cache / memcached")
    panel.grid(alpha=0.3)


def patterns(found: Rows):
    rows = of(found, "patterns")
    figure, (first, interval, cdf) = panels(3, share_y=False)
    for row in rows:
        name = row["workload"]
        if name in "ad":
            keys = row["first_keys"]
            places = range(len(keys))
            first.plot(places, keys, ",", color=COLORS[name], label=name.upper(), rasterized=True)
        counts = row["intervals_log2"]
        label, color = name.upper(), COLORS[name]
        interval.plot([2**i for i in range(len(counts))], counts, "o-", ms=3, color=color, label=label)
        cdf.plot(*zip(*row["cdf"]), color=color, label=label)
    first.set(title="fig. 4: first 5,000 requests", xlabel="request", ylabel="key, as first seen")
    interval.set(title="fig. 5: requests until a key's next", xlabel="interval", ylabel="times")
    interval.set_xscale("log", base=2)
    interval.set_yscale("log")
    cdf.set(title="fig. 6: requests by key", xlabel="part of the keys, rarest first")
    for panel in (first, interval, cdf):
        panel.legend(fontsize="small", markerscale=4 if panel is first else 1)
    return figure


def replacement(found: Rows):
    rows = of(found, "replacement")
    figure, axes = panels(3)
    for panel, policy, letter in zip(axes, ("fifo", "lru", "lfu"), "abc"):
        for name, color in COLORS.items():
            for ways, style in WAY_STYLES.items():
                mine = pick(rows, workload=name, replacement=policy, ways=ways)
                label = name.upper() if ways == 8 else None
                panel.plot(*curve(mine, "ratio", "miss_rate"), style, color=color, label=label)
        size_axis(panel)
        panel.set_title(f"fig. 7 ({letter}): {policy.upper()}")
    axes[1].plot([1 / 16], [0.60], **PAPER, label="paper, A")
    axes[0].set_ylabel("GETs that miss")
    axes[0].set_ylim(bottom=0)
    for ways, style in WAY_STYLES.items():
        axes[2].plot([], [], style, color="gray", label=f"{ways}-way")
    axes[1].legend(fontsize="small")
    axes[2].legend(fontsize="small")
    return figure


def small(found: Rows):
    rows, short = of(found, "replacement"), of(found, "short")
    figure, axes = panels(4, width=2.5)
    cases = [(1 / 32, "1/32", rows), (1 / 16, "1/16", rows)]
    cases += [(1 / 32, "1/32, short run", short), (1 / 16, "1/16, short run", short)]
    for panel, (ratio, title, shown) in zip(axes, cases):
        for policy, color in (("fifo", "tab:gray"), ("lru", "tab:blue"), ("lfu", "tab:purple")):
            mine = pick(shown, workload="a", replacement=policy, ratio=ratio, call=0)
            panel.plot(*curve(mine, "ways", "miss_rate"), "o-", color=color, label=policy.upper())
        panel.set_xscale("log", base=2)
        panel.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        panel.set(title=f"fig. 8: A, size {title}", xlabel="ways")
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("GETs that miss")
    axes[0].legend(fontsize="small")
    return figure


def allocate(found: Rows):
    rows = of(found, "allocate")
    figure, axes = panels(4, width=2.5)
    for panel, name in zip(axes, COLORS):
        for policy, style, label in (("safe", "o-", "read-allocate"), ("none", "s--", "not")):
            mine = pick(rows, workload=name, allocate=policy)
            panel.plot(*curve(mine, "ratio", "miss_rate"), style, color=COLORS[name], label=label)
        size_axis(panel)
        panel.set_title(f"{'fig. 9: ' if name == 'c' else ''}workload {name.upper()}, LRU, 8-way")
        panel.set_ylim(0, 1)
        panel.legend(fontsize="small")
    axes[0].set_ylabel("GETs that miss")
    return figure


def throughput(found: Rows):
    rows = of(found, "model")
    rates = (0, 0.2, 0.4, 0.6, 0.8, 1)
    figure, axes = panels(6, width=1.9)
    for panel, rate in zip(axes, rates):
        mine = sorted(pick(rows, miss_rate=rate), key=lambda row: row["get_share"])
        shares = [row["get_share"] for row in mine]
        for key, color, label in (
            ("throughput_as_printed", "tab:blue", "mean of rates (paper)"),
            ("throughput_in_turn", "tab:orange", "one after the other"),
        ):
            low, high = ([row[key][i] / 1000 for row in mine] for i in (0, 1))
            panel.fill_between(shares, low, high, color=color, alpha=0.4, label=label)
        for share in (0.5, 0.95):
            panel.axvline(share, color="gray", linewidth=0.7)
        panel.set(title=f"{rate:.0%} of GETs miss", xlabel="GETs / requests")
        panel.grid(alpha=0.3)
    axes[3].plot([0.5, 0.5], [210, 350], **PAPER, label="paper")
    axes[0].set_ylabel("fig. 13: thousand operations/s")
    axes[3].legend(fontsize="x-small")
    return figure


def latency(found: Rows):
    rows = of(found, "hardware")
    figure, axes = panels(2, width=3.8)
    for panel, key, title in zip(
        axes,
        ("improvement_as_printed", "improvement_seen"),
        ("fig. 14: equation 1 as printed (20 and 87 us)", "with the network in both (29 and 87 us)"),
    ):
        for name, color in COLORS.items():
            for ways, style in WAY_STYLES.items():
                mine = pick(rows, workload=name, ways=ways)
                label = name.upper() if ways == 8 else None
                panel.plot(*curve(mine, "ratio", key), style, color=color, label=label)
        size_axis(panel)
        panel.set_title(title, fontsize="medium")
    axes[0].plot([1 / 2, 1 / 2], [2.0, 3.5], **PAPER, label="paper: A and B, D")
    axes[0].set_ylabel("GET latency: host alone / with the NIC")
    axes[0].legend(fontsize="small")
    return figure


def option(head: dict, call: int, name: str) -> str:
    """What the command of a call had after the option."""
    words = head["commands"][call].split()
    return words[words.index(name) + 1]


def budget_of(row: dict, head: dict) -> int:
    """Bits of block memory that a row of experiment "tags" might use. Rows of a table are a power of
    two and the budgets twice each other, so that a table takes more than half of its budget."""
    sizes = option(head, row["call"], "-s").split(",")
    budgets = [int(size.removeprefix("bits:")) for size in sizes]
    return min(bits for bits in budgets if bits >= row["block_memory_bits"])


def tags(found: Rows):
    rows, head = of(found, "tags"), pick(found, measure="provenance")[0]
    figure, axes = panels(3)
    for part, color in zip(PARTS, ("C0", "C1", "C2", "C3", "C4")):
        budget = RECORDS // part * PAPER_ENTRY_BITS
        kept = pick(rows, call=0, ratio=1 / part)
        filled = [row for row in rows if row["call"] == 1 and budget_of(row, head) == budget]
        full = [
            row
            for row in rows
            if (row["call"] > 1 or (row["call"] == 1 and row["tag_bits"] in (7, 17))) and budget_of(row, head) == budget
        ]
        for panel, mine in zip(axes, (kept, filled, full)):
            panel.plot(*curve(mine, "tag_bits", "miss_rate"), "o-", ms=3, color=color, label=f"1/{part}")
    titles = ("rows kept", "block memory kept", "block memory fully used")
    for panel, letter, title in zip(axes, "abc", titles):
        panel.set(title=f"fig. 15 ({letter}): {title}", xlabel="bits of a tag")
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("GETs that miss, workload A")
    axes[0].set_ylim(bottom=0)
    axes[2].legend(fontsize="small", title="size with 17 bits", title_fontsize="small")
    return figure


def safe_allocate(rows: Rows, panel) -> None:
    for name in ("a", "b"):
        for key, policy, style, label in (
            ("stale", "unsafe", "o-", "old values, unsafe"),
            ("stale", "safe", "x:", "old values, safe"),
            ("killed_fills", "safe", "s--", "misses killed, safe"),
        ):
            mine = pick(rows, workload=name, allocate=policy)
            xs, ys = curve(mine, "reply_after", key)
            panel.plot(xs, ys, style, color=COLORS[name], label=f"{name.upper()}: {label}")
    panel.set_xscale("log", base=2)
    panel.set_yscale("symlog", linthresh=1)
    panel.set_ylim(bottom=-0.2)
    panel.set(title="replies under way, size 1/4", xlabel="requests until the reply", ylabel="GETs")


def varying_sizes(rows: Rows, panel) -> None:
    for name in ("a", "d"):
        for storage, style in (("slots", "s--"), ("blocks", "o-")):
            mine = pick(rows, workload=name, storage=storage)
            xs, ys = curve(mine, "slot_bytes", "miss_rate")
            panel.plot(xs, ys, style, color=COLORS[name], label=f"{name.upper()}, {storage}")
    panel.set_xscale("log", base=2)
    panel.set_ylim(bottom=0)
    panel.set(
        title="Facebook's item sizes, 32 MiB of DRAM",
        xlabel="bytes of DRAM an entry",
        ylabel="GETs that miss",
    )


def other_latencies(rows: Rows, head: dict, panel) -> None:
    hosts = [float(option(head, call, "--host-us")) for call in range(len(head["commands"]))]
    for rate in sorted({row["miss_rate"] for row in rows}):
        mine = sorted(pick(rows, miss_rate=rate), key=lambda row: row["call"])
        ys = [row["improvement_seen"] for row in mine]
        panel.plot(hosts, ys, "o-", ms=3, label=f"{rate:.0%} miss")
    panel.axhline(1, color="gray", linewidth=0.7)
    panel.set_xscale("log")
    panel.set_xticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
    panel.set(title="a hit in 4 us", xlabel="host's latency, us", ylabel="host alone / with the NIC")


def extensions(rows: Rows):
    figure, axes = panels(3, width=3.6, share_y=False)
    heads = pick(rows, measure="provenance")
    runs = [row for row in rows if row["measure"] != "provenance"]
    safe_allocate(pick(runs, experiment="safe"), axes[0])
    varying_sizes(pick(runs, experiment="sizes"), axes[1])
    other_latencies(pick(runs, experiment="today"), pick(heads, experiment="today")[0], axes[2])
    for panel in axes:
        panel.grid(alpha=0.3)
        panel.legend(fontsize="x-small")
    return figure


def law(rows: Rows, calls: dict[int, str], panel) -> None:
    for call, label in calls.items():
        panel.plot(*curve(pick(rows, call=call), "ratio", "miss_rate"), "o-", label=label)
    panel.plot([1 / 16], [0.60], **PAPER, label="paper")
    size_axis(panel)
    panel.set(title="workload A, LRU: which Zipf", ylabel="GETs that miss")
    panel.set_ylim(bottom=0)


def lengths(rows: Rows, panel) -> None:
    for name in ("b", "c"):
        xs, without = curve(
            pick(rows, workload=name, replacement="lru", allocate="none", ratio=1 / 4),
            "requests",
            "miss_rate",
        )
        _, with_ = curve(
            pick(rows, workload=name, replacement="lru", allocate="safe", ratio=1 / 4),
            "requests",
            "miss_rate",
        )
        gap = [100 * (a - b) for a, b in zip(without, with_)]
        panel.plot(xs, gap, "o-", color=COLORS[name], label=f"{name.upper()} 1/4: none - allocate")
    for ratio, style in ((1 / 32, "s--"), (1 / 2, "s:")):
        mine = pick(rows, workload="a", allocate="safe", ratio=ratio)
        xs, lru = curve(pick(mine, replacement="lru"), "requests", "miss_rate")
        _, lfu = curve(pick(mine, replacement="lfu"), "requests", "miss_rate")
        gap = [100 * (a - b) for a, b in zip(lru, lfu)]
        panel.plot(xs, gap, style, color=COLORS["a"], label=f"A 1/{round(1 / ratio)}: LRU - LFU")
    panel.set_xscale("log", base=2)
    panel.set(title="how long a run is", xlabel="requests", ylabel="points of the miss rate")
    panel.grid(alpha=0.3)


def interpretation(rows: Rows):
    figure, axes = panels(2, width=3.8, share_y=False)
    runs = [row for row in rows if row["measure"] != "provenance"]
    names = {0: "YCSB's scrambled Zipf", 1: "Zipf's law over the same keys"}
    law(pick(runs, experiment="zipf"), names, axes[0])
    lengths(pick(runs, experiment="length"), axes[1])
    for panel in axes:
        panel.legend(fontsize="x-small")
    return figure
