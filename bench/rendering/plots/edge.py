# SPDX-License-Identifier: Apache-2.0
"""edge-sim's figures. Black diamonds are the dissertation's values, where its text states them."""

from __future__ import annotations

from rendering.edge import FLUSH_NAMES, FLUSHES, PEAK_LANES, mean, names, thread_mpki
from rendering.plots.canvas import panels
from rendering.rows import Rows, only, pick

PAPER = {"color": "black", "marker": "D", "linestyle": "none", "zorder": 5}
VICTIMS = {"oldest": "tab:blue", "newest": "tab:orange"}
STATED = {"oldest": (2000, 50), "newest": (8000, 220)}  # without and with all short cuts


def preemption(found: Rows):
    rows = pick(found, scheduler="gto")
    figure, (left, right) = panels(2, 4.6, 3.2)
    kernels = names(rows)
    for number, (victim, color) in enumerate(VICTIMS.items()):
        shift = 0.4 * number - 0.2
        base = [only(rows, kernel=kernel, victim=victim, flush="none")["preempt_cycles"] for kernel in kernels]
        left.bar([place + shift for place in range(len(kernels))], base, 0.4, color=color, label=victim)
        means = [mean([row["preempt_cycles"] for row in pick(rows, victim=victim, flush=flush)]) for flush in FLUSHES]
        right.bar([place + shift for place in range(len(FLUSHES))], means, 0.4, color=color, label=victim)
        right.plot([shift, len(FLUSHES) - 1 + shift], STATED[victim], **PAPER)
    left.set_xticks(range(len(kernels)), kernels, rotation=45, ha="right")
    right.set_xticks(range(len(FLUSHES)), [FLUSH_NAMES[flush] for flush in FLUSHES], rotation=45, ha="right")
    left.set(title="fig. 5.11: preemption, no short cuts", ylabel="cycles", yscale="log")
    right.set(title="fig. 5.12: mean, with short cuts", yscale="log")
    for panel in (left, right):
        panel.legend(fontsize="small")
        panel.grid(alpha=0.3)
    return figure


def memory(found: Rows):
    sizes = [row for row in found if row["experiment"] == "l1" and row["memory"] == "full"]
    figure, (misses, speed, width) = panels(3, 3.2, 3.0, sharey=False)
    labels = [f"{row['l1_bytes'] // 1024} KB" for row in sizes]
    misses.plot(labels, [thread_mpki(row) for row in sizes], "o-")
    misses.plot(["256 KB"], [10], **PAPER)
    ideal = [only(found, memory=model) for model in ("no-latency", "no-stalls")]
    shares = [100 * row["lane_ipc"] / PEAK_LANES for row in sizes + ideal]
    speed.plot(labels + ["no latency", "no stalls"], shares, "o-")
    speed.plot(["1024 KB", "no latency", "no stalls"], [12, 21, 33], **PAPER)
    warps = sorted(pick(found, experiment="warp-size"), key=lambda row: row["warp_size"])
    width.plot([str(row["warp_size"]) for row in warps], [warps[0]["cycles"] / row["cycles"] for row in warps], "o-")
    width.plot(["64"], [0.82], **PAPER)
    misses.set(title="fig. 3.11", xlabel="L1", ylabel="misses per 1,000 thread instructions")
    speed.set(title="fig. 3.12", xlabel="L1", ylabel="% of the peak IPC")
    width.set(title="fig. 3.14", xlabel="warp size", ylabel="speed")
    for panel in (misses, speed, width):
        panel.tick_params(axis="x", rotation=60)
        panel.grid(alpha=0.3)
    return figure
