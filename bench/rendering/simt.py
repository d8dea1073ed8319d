# SPDX-License-Identifier: Apache-2.0
"""Tables of cfg-sim (sim/simt)."""

from __future__ import annotations

from rendering.markdown import note, percent, table
from rendering.registry import block, plot
from rendering.rows import Rows, only, pick, rows, source

FILE = "cfg_sim"


def figure(name: str, **wanted: object) -> Rows:
    return rows(FILE, figure=name, **wanted)


def efficiency(name: str, **wanted: object) -> float:
    return only(figure(name, **wanted))["ratio_of_sums"]


def few_lanes(view: str) -> float:
    """Share of the instructions that 1 to 4 lanes execute."""
    return sum(only(figure("3.10", view=view))["histogram"][:4])


@block("cfg-sim-papers")
def against_dissertation() -> str:
    actual = efficiency("3.10", view="actual")
    naive = {view: efficiency("3.10", view=view) for view in ("pessimistic", "augmented")}
    errors = [abs(predicted_error(lengths, hits)) for lengths, hits in mixtures()]
    lines = [
        ("figure 2.3, six threads", '"approximately 46%"', percent(efficiency("2.3"))),
        ("the same without its last block, H", "", percent(efficiency("2.3 without H"))),
        ("figure 3.9, all branches equal", "not given", percent(efficiency("3.9", view="pessimistic"))),
        ("the same, the error edge never taken", "not given", percent(efficiency("3.9", view="augmented"))),
        ("the same, the edge removed", "left open", percent(efficiency("3.9", view="edge removed"))),
        ("figure 3.10, actual", "about 40%", percent(actual)),
        ("all branches equal (pessimistic), times lower", "2.7", f"{actual / naive['pessimistic']:.1f}"),
        ("never taken stays never taken (augmented), times lower", "between", f"{actual / naive['augmented']:.1f}"),
        ("instructions of 1 to 4 lanes: actual", "", percent(few_lanes("actual"), 0)),
        (
            "the same, pessimistic; augmented",
            '"significantly more"',
            "; ".join(percent(few_lanes(v), 0) for v in naive),
        ),
        ("largest error of a prediction", "1.3%", percent(max(errors))),
    ]
    for number, theirs in ((3, '"roughly 50%"; 100%'), (4, "under 100%; 100%"), (5, "open; 100%")):
        each = [percent(efficiency("7.2.1", example=number, view=view)) for view in ("probabilities", "model")]
        lines.append((f"example {number} of 7.2.1: probabilities; model", theirs, "; ".join(each)))
    shown = figure("2.3") + figure("2.3 without H") + figure("3.9") + figure("3.10") + figure("7.2.1")
    return table(("SIMD efficiency", "the dissertation", "cfg-sim"), lines) + "\n\n" + without_command(shown)


def without_command(found: Rows) -> str:
    return source([{key: row[key] for key in ("machine", "commit", "date")} for row in found], FILE)


def mixtures() -> list[tuple[str, float]]:
    return [(row["lengths"], row["hits"]) for row in figure("mixtures", method="replayed")]


def predicted_error(lengths: str, hits: float, name: str = "mixtures") -> float:
    true = efficiency(name, lengths=lengths, hits=hits, method="replayed")
    return efficiency(name, lengths=lengths, hits=hits, method="classes of one mixture") / true - 1


@block("cfg-sim-mixtures")
def mixture_table() -> str:
    equal = efficiency("mixtures", method="equal")
    lines = []
    for lengths, hits in mixtures():
        at = {"lengths": lengths, "hits": hits}
        true = efficiency("mixtures", **at, method="replayed")
        others = (
            efficiency("mixtures", **at, method=method)
            for method in ("its own counts, no classes", "its own probabilities alone", "augmented")
        )
        lines.append(
            (
                f"{lengths}, {hits:.0%}",
                f"{true:.3f}",
                f"{efficiency('mixtures', **at, method='classes of one mixture'):.3f}",
                f"{100 * predicted_error(lengths, hits):+.1f}%",
                f"{100 * predicted_error(lengths, hits, 'halves'):+.1f}%",
                *(f"{one:.3f}" for one in others),
                f"{true / equal:.1f}",
            )
        )
    head = (
        "key bytes, hits",
        "replayed",
        "predicted",
        "error",
        "other threads",
        "own counts",
        "probabilities",
        "augmented",
        "naive",
    )
    return table(head, lines) + "\n\n" + without_command(figure("mixtures"))


@block("cfg-sim-warps")
def warps() -> str:
    sizes = [row["size"] for row in figure("warp size")]
    lines = [
        ("lanes of a warp", *sizes),
        ("SIMD efficiency", *(f"{efficiency('warp size', size=size):.3f}" for size in sizes)),
    ]
    sorted_ = efficiency("sorted", class_rho=1)
    sets = [efficiency("sets", method=method) for method in ("replayed", "classes")]
    text = table(lines[0], lines[1:])
    more = [
        ("four lengths, 85% hits", f"{efficiency('3.10', view='actual'):.3f}"),
        ("the same, sorted by class before warps are formed", f"{sorted_:.3f}"),
        ("the same with 10% sets: replayed", f"{sets[0]:.3f}"),
        ("and predicted", f"{sets[1]:.3f}"),
    ]
    return text + "\n\n" + table(("", "SIMD efficiency"), more) + "\n\n" + without_command(figure("warp size"))


KERNEL_BATCHES = {
    "hits16": "16-byte keys, all hits",
    "misses16": "16-byte keys, all misses",
    "hits32": "32-byte keys, all hits",
    "misses32": "32-byte keys, all misses",
    "hits64": "64-byte keys, all hits",
    "mixed16": "16-byte keys, 85% hits",
    "mixture": "16 and 32 bytes, half each, all hits",
    "mixture85": "the same, 85% hits",
    "mostly16": "16 and 32 bytes, 4:1, 95% hits",
}


def against(true: float, ours: float) -> str:
    return f"{ours:.3f}, {100 * (ours / true - 1):+.1f}%"


@block("cfg-sim-kernel")
def kernel() -> str:
    lines = []
    for batch, title in KERNEL_BATCHES.items():
        found = figure("kernel", batch=batch)
        if not found:
            continue
        true = only(found, view="counters")["ratio_of_sums"]
        predicted = pick(found, view="predicted")
        lines.append(
            (
                title,
                f"{true:.3f}",
                against(true, only(found, view="model")["ratio_of_sums"]),
                against(true, predicted[0]["ratio_of_sums"]) if predicted else "",
            )
        )
    counted = figure("kernel")[0]["counted_on"]
    head = ("batch of 65,536 gets", "`ncu`'s counters", "own counts", "predicted")
    simulated = without_command(figure("kernel")).replace("\n", " ")
    return table(head, lines) + "\n\n" + note(f"Counted on {counted}. Simulated: {simulated}")


plot("cfg-sim-mixtures", lambda: figure("mixtures"), "simt", "mixtures")
plot("cfg-sim-histogram", lambda: figure("3.10"), "simt", "histogram")
plot("cfg-sim-convergence", lambda: figure("3.10", view="predicted"), "simt", "convergence")
