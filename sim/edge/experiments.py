# SPDX-License-Identifier: Apache-2.0
"""What is simulated for each figure: arguments of edge-sim, and which figures draw from it."""

from __future__ import annotations

from dataclasses import dataclass

RODINIA = ("stencil", "reduce", "bfs", "kmeans", "needle", "matmul", "conv")
KERNELS = ",".join(RODINIA)
FLUSHES = "none,barrier,priority,buffer,replay,all"
CHAPTER_3 = "get-mixed"
SLOW, FAST = "10000", "1500"


@dataclass(frozen=True)
class Experiment:
    """Calls of the simulator whose rows carry one name."""

    name: str
    what: str
    calls: tuple[tuple[str, ...], ...]


def run(*arguments: str, kernels: str = KERNELS) -> tuple[str, ...]:
    return ("run", "-k", kernels, *arguments)


EXPERIMENTS = (
    Experiment(
        "preempt",
        "figures 5.11 and 5.12: how long a victim takes to leave",
        (run("--period", SLOW, "--victim", "oldest,newest", "--flush", FLUSHES, "--always"),),
    ),
)
NAMES = tuple(experiment.name for experiment in EXPERIMENTS)
