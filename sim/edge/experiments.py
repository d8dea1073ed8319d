# SPDX-License-Identifier: Apache-2.0
"""What is simulated for each figure: arguments of edge-sim, and which figures draw from it."""

from __future__ import annotations

from dataclasses import dataclass

RODINIA = ("stencil", "reduce", "bfs", "kmeans", "needle", "matmul", "conv")
KERNELS = ",".join(RODINIA)
FLUSHES = "none,barrier,priority,buffer,replay,all"
CHAPTER_3 = "get-mixed"
FULL = "conv,bfs,kmeans,get"  # a full GPU; others take long
ALL = f"{KERNELS},strings,rays,get,get-mixed"
SLOW, FAST = "10000", "1500"


@dataclass(frozen=True)
class Experiment:
    """Calls of the simulator whose rows carry one name."""

    name: str
    what: str
    calls: tuple[tuple[str, ...], ...]


def run(*arguments: str, kernels: str = KERNELS) -> tuple[str, ...]:
    return ("run", "-k", kernels, *arguments)


def both(*arguments: str, kernels: str = KERNELS) -> tuple[str, ...]:
    """With each way to choose a victim and everything that shortens preemption."""
    return run("--flush", "all", *arguments, kernels=kernels)


# One SM of 16 gets one interrupt of 16.
SMS = 16
SLOW_ON_ONE, FAST_ON_ONE = str(SMS * 10000), str(SMS * 1500)
# Iterations that make the routine about 15 and 212 times as long.
SHORT, LONG = "73", "1093"
# GET kernels so often that they take as large a part of the machine as the dissertation's at 2.5
# and 4 M requests/s.
CALM, BUSY = "29600", "18500"
EVENTS = ("--machine", "gem5-16", "--scale", "4", "--event", "get", "--event-scale", "0.125", "--flush", "all")
L1_SIZES = "0,8192:8,16384:8,32768:8,65536:8,131072:8,262144:8,1048576:0"

EXPERIMENTS = (
    Experiment("alone", "figures 5.9 and 5.10: contexts and registers that are free", (run(),)),
    Experiment(
        "preempt",
        "figures 5.11 and 5.12: how long a victim takes to leave",
        (run("--period", SLOW, "--victim", "oldest,newest", "--flush", FLUSHES, "--always"),),
    ),
    Experiment(
        "round-robin",
        "figure 5.12 with another warp scheduler",
        (
            run(
                *("--period", SLOW, "--victim", "oldest,newest", "--flush", "none,all", "--always"),
                *("--scheduler", "rr"),
            ),
        ),
    ),
    Experiment(
        "isr",
        "the service routine alone, and beside a kernel with and without priority",
        (
            run("--period", "20000", "--runs", "20", "--isr-lines", "0,3", "--delay", f"0,{SHORT},{LONG}", kernels="none"),
            run("--period", SLOW, "--flush", "all", "--isr-lines", "3"),
            run("--period", SLOW, "--flush", "all", "--isr-lines", "3", "--isr-last"),
        ),
    ),
    Experiment(
        "interference",
        "figure 5.13: what routines cost the kernels beside them",
        (
            both(
                *("--victim", "dedicated,reserved,oldest,newest", "--period", f"{SLOW_ON_ONE},{FAST_ON_ONE}"),
                *("--delay", f"{SHORT},{LONG}", "--isr-lines", "3"),
                kernels="stencil,reduce,matmul,conv",
            ),
            both("--victim", "dedicated,reserved", kernels="stencil,reduce,matmul,conv"),
        ),
    ),
    Experiment(
        "reserve",
        "figure 5.14: what reserving costs the convolution",
        (
            run(*EVENTS, "--reserve-sms", "0,1,2,4,6,8", kernels="conv"),
            run(*EVENTS, "--reserve-blocks", "1,2", kernels="conv"),
            run(*EVENTS, "--isr-lines", "3", kernels="conv"),
        ),
    ),
    Experiment(
        "events",
        "figures 5.15 and 5.16: the convolution beside GET kernels",
        (
            run(*EVENTS, "--period", f"{CALM},{BUSY}", "--priority", "p1,p2", "--isr-lines", "0,3", kernels="conv"),
            run(
                *EVENTS,
                *("--period", f"{CALM},{BUSY}", "--priority", "p1,p2", "--isr-lines", "3"),
                *("--reserve-sms", "1,4,8"),
                kernels="conv",
            ),
            run(
                *EVENTS,
                *("--period", f"{CALM},{BUSY}", "--priority", "p1,p2", "--isr-lines", "3"),
                *("--reserve-blocks", "1,2"),
                kernels="conv",
            ),
            ("run", "-k", "get", "--machine", "gem5-16", "--scale", "0.125"),
        ),
    ),
    Experiment(
        "lanes",
        "figures 3.2 and 3.10: lanes that work, recorded and estimated",
        (("lanes", "-k", "get,get-mixed,strings,rays"),),
    ),
    Experiment(
        "l1",
        "figures 3.11 and 3.12: the L1's size, and memory without latency or stalls",
        (
            run("--machine", "gpgpu-sim", "--l1", L1_SIZES, kernels=CHAPTER_3),
            run("--machine", "gpgpu-sim", "--memory", "no-latency,no-stalls", kernels=CHAPTER_3),
        ),
    ),
    Experiment(
        "warp-size",
        "figure 3.14: narrower and wider warps",
        (run("--machine", "gpgpu-sim", "--warp-size", "8,16,32,64", kernels=CHAPTER_3),),
    ),
    Experiment(
        "gpu",
        "the kernels as edge-sim-gpu runs them: eight blocks, and some with a full GPU",
        (
            run("--machine", "h100", "--blocks", "8", kernels=ALL),
            run("--machine", "h100", "--scale", "16", kernels=FULL),
        ),
    ),
)
NAMES = tuple(experiment.name for experiment in EXPERIMENTS)
