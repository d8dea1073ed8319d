# SPDX-License-Identifier: Apache-2.0
"""cfg-sim's figures."""

from __future__ import annotations

from rendering.plots.canvas import pyplot
from rendering.rows import Rows


def mixtures(rows: Rows):
    cases = [(row["lengths"], row["hits"]) for row in rows if row["method"] == "replayed"]
    figure, axes = pyplot.subplots(figsize=(8.5, 3.6))
    methods = ["replayed", "classes of one mixture", "its own counts, no classes",
               "its own probabilities alone", "augmented"]  # fmt: skip
    for i, method in enumerate(methods):
        heights = [row["ratio_of_sums"] for row in rows if row["method"] == method]
        axes.bar([x + (i - 2) * 0.17 for x in range(len(cases))], heights, 0.17, label=method)
    equal = next(row["ratio_of_sums"] for row in rows if row["method"] == "equal")
    axes.axhline(equal, color="black", linewidth=0.8, linestyle="--", label="equal probabilities")
    axes.set_xticks(
        range(len(cases)), [f"{lengths}\n{hits:.0%}".replace(" ", "\n") for lengths, hits in cases], fontsize=7
    )
    axes.set_ylabel("SIMD efficiency (ratio of sums)")
    axes.set_xlabel("key lengths, hit ratio")
    axes.legend(fontsize=8)
    return figure


def histogram(rows: Rows):
    figure, axes = pyplot.subplots(figsize=(5.6, 3.2))
    bottom = [0.0] * len(rows)
    for low in range(0, 32, 4):
        heights = [sum(row["histogram"][low : low + 4]) for row in rows]
        color = pyplot.cm.viridis(low / 28)
        axes.bar([row["view"] for row in rows], heights, 0.6, bottom, color=color, label=f"{low + 1} to {low + 4}")
        bottom = [b + h for b, h in zip(bottom, heights)]
    axes.set_ylabel("share of the warp's instructions")
    axes.legend(title="active lanes", fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def convergence(rows: Rows):
    (row,) = rows
    passes = [point[0] for point in row["convergence"]]
    figure, axes = pyplot.subplots(figsize=(5.6, 3.2))
    for at, label in ((1, "equation 3.1"), (3, "ratio of sums")):
        values = [point[at] for point in row["convergence"]]
        widths = [point[at + 1] for point in row["convergence"]]
        axes.errorbar(passes, values, widths, capsize=3, marker="o", markersize=3, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("passes")
    axes.set_ylabel("SIMD efficiency, 95% interval")
    axes.legend()
    return figure
