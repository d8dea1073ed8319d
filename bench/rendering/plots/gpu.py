# SPDX-License-Identifier: Apache-2.0
"""bench/gpu: throughput and latency against the size of batches, for GET of 16-byte keys; what of a single batch's time
is transfer (figure 3.8 of the dissertation); and requests beside background work (figures 6 and 7 of MemcachedGPU)."""

from __future__ import annotations

from rendering.gpu import split_times, way_of
from rendering.plots.canvas import pyplot

OTHER_STUDIES = ("--device-memory", "--ping", "--sets")


def last_of(options: str, name: str, otherwise: int) -> int:
    """The value of an option; where it is given twice, the last one counts."""
    words = options.split()
    found = [int(words[i + 1]) for i, word in enumerate(words) if word == name]
    return found[-1] if found else otherwise


def name_of(study: dict) -> str:
    options = study["options"]
    copied = last_of(options, "--copied", 0)
    way = "copy engines" if 0 < copied <= study["rows"][0]["batch"] else "in place"
    if "--persistent" in options:
        way += ", persistent kernel"
    batches = last_of(options, "--threads", 1) * last_of(options, "--depth", 1)
    return f"{way}, {batches} {'batch' if batches == 1 else 'batches'} under way"


def plain(study: dict) -> bool:
    """Whether it is GET of 16-byte keys alone, as many as are done, and not of the split."""
    options = study["options"]
    other = any(o in options for o in (*OTHER_STUDIES, "--rate", "--background", "--copied 0"))
    sizes = study.get("key_size", 16) == 16 and study.get("value_size", 2) == 2 and study.get("sizes") != "etc"
    return (
        not other and sizes and study.get("zipf", 0) == 0 and study.get("hit_ratio", 1) == 1 and len(study["rows"]) > 2
    )


def batches(found: list[dict]):
    studies = [study for study in found if plain(study)]
    figure, (rate, latency) = pyplot.subplots(1, 2, figsize=(9, 3.8))
    for study in studies:
        sizes = [row["batch"] for row in study["rows"]]
        rates = [row["requests_per_s"] / 1e6 for row in study["rows"]]
        label = name_of(study)
        rate.plot(sizes, rates, marker="o", label=label)
        latency.plot(rates, [row["batch_p99_us"] for row in study["rows"]], marker="o", label=label)
    rate.set(xscale="log", xlabel="requests a batch", ylabel="million gets a second")
    latency.set(yscale="log", xlabel="million gets a second", ylabel="99th percentile of batches, us")
    for axes in (rate, latency):
        axes.grid(alpha=0.3)
    rate.set_ylim(0, 1.5 * rate.get_ylim()[1])  # room for the legend
    rate.legend(fontsize=7, loc="upper left")
    return figure


def split(_: list[dict]):
    """Bars for each size of batches: the work, and what the two ways over the bus take besides."""
    times = split_times()
    sizes = sorted(times["work"])
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    places = range(len(sizes))
    for shift, way in ((-0.2, "in place"), (0.2, "copy engines")):
        shares = [100 * max(0.0, 1 - times["work"][size] / times[way][size]) for size in sizes]
        at = [place + shift for place in places]
        label = "work" if shift < 0 else None
        axes.bar(at, [100 - share for share in shares], 0.38, color="tab:gray", label=label)
        axes.bar(at, shares, 0.38, bottom=[100 - share for share in shares], label=f"transfer, {way}")
    axes.set_xticks(list(places), [str(size) for size in sizes])
    axes.set(xlabel="requests a batch", ylabel="share of a single batch's time, %", ylim=(0, 125))
    axes.legend(fontsize=8, loc="upper center", ncol=3)
    return figure


def background(studies: list[dict]):
    """A column for each rate: latency above, the background work's time below, against its launches."""
    rates = sorted({study["offered_per_s"] for study in studies})
    figure, axes = pyplot.subplots(2, len(rates), figsize=(4.4 * len(rates), 5.6), squeeze=False)
    for study in studies:
        column = rates.index(study["offered_per_s"])
        beside = [row for row in study["rows"] if "background_ms" in row]
        launches = [row["background_launches"] for row in beside]
        label = f"{way_of(study)}, cut by {beside[0]['background_cut']}"
        above, below = axes[0][column], axes[1][column]
        line = above.plot(launches, [row["batch_mean_us"] for row in beside], marker="o", label=label)[0]
        above.plot(launches, [row["batch_max_us"] for row in beside], marker="x", ls=":", color=line.get_color())
        below.plot(launches, [row["background_ms"] for row in beside], marker="o", label=label, color=line.get_color())
        below.plot(launches, [row["background_alone_ms"] for row in beside], marker="x", ls=":", color=line.get_color())
        for row in study["rows"]:
            if "background_ms" not in row:
                above.axhline(row["batch_mean_us"], color="gray", lw=0.8)
        above.set_title(f"{study['offered_per_s'] / 1e6:g} million gets a second", fontsize=9)
    for above, below in axes.T:
        above.set(xscale="log", yscale="log", ylabel="batch, us: mean (o), longest (x)")
        below.set(
            xscale="log", yscale="log", xlabel="launches of the background work", ylabel="background, ms (x: alone)"
        )
        above.legend(fontsize=7)
        for part in (above, below):
            part.grid(alpha=0.3)
    return figure
