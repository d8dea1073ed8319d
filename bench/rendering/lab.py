# SPDX-License-Identifier: Apache-2.0
"""Tables of the lab notes: the same measurement at several commits."""

from __future__ import annotations

from rendering.gpu import FILE, study
from rendering.markdown import microseconds, table
from rendering.registry import block
from rendering.rows import only, source

# Of each step: what was done, its commit, and how its studies' options end: batches of 4096, of 65,536 by copy
# engines, of 65,536 in GPU memory, of one by the persistent kernel.
STEPS = (
    (
        "fast path for single-key gets, look-ups past L1, 64 registers",
        "cfd5998",
        "--threads 14 --batches 1024,2048,4096",
        "--copied 1 --batches 4096,16384,65536",
        "--device-memory --batches 65536",
        "--persistent --batches 1,256",
    ),
    (
        "one fence at the end of a share",
        "3d9d725",
        "--threads 14 --batches 1024,4096",
        "--copied 1 --batches 8192,65536",
        "--device-memory --batches 65536",
        "--persistent --batches 1,256",
    ),
    (
        "several blocks reclaim",
        "5d67f99",
        "--threads 14 --batches 4096",
        "--copied 8192 --threads 8 --batches 65536",
        "--device-memory --batches 4096,65536 --requests 4194304",
        "--persistent --batches 1,16,256 --requests 65536 --threads 1",
    ),
    (
        "loads overlap, no stack, the job in the doorbell",
        "e4e4718",
        "--threads 14 --batches 2048,4096",
        "--copied 8192 --batches 65536",
        "4096,65536,262144 --threads 12",
        "--persistent --batches 1,16,256",
    ),
    (
        "overflow sets on the fast path, few threads",
        "9e32411",
        "--batches 2048,4096 --threads 2 --depth 10",
        "--copied 8192 --batches 65536",
        "4096,65536,262144 --threads 12",
        "--persistent --batches 1,16,256 --requests 65536 --threads 1",
    ),
    (
        "a waiting block stands in its epoch",
        "0e1620e",
        "--passes 8 --batches 2048,4096 --threads 2 --depth 10",
        "--passes 8 --batches 65536",
        "4096,65536,262144 --threads 12",
        "--persistent --batches 1,16,256 --requests 65536 --threads 1",
    ),
)
SET_STEPS = (
    ("the stages that all engines share", "3d9d725", "--sets 1 --batches 4096,65536", None),
    (
        "fast path for single-key sets, several blocks reclaim",
        "5d67f99",
        "--sets 1 --batches 4096,65536 --memory 32768",
        "--sets 1 --batches 4096,65536",
    ),
    ("as of", "2f447e9", "--sets 1 --batches 4096,65536 --memory 32768", "--sets 1 --batches 4096,65536"),
)


def rate(commit: str, ending: str | None, batch: int) -> str:
    if ending is None:
        return ""
    return f"{only(study(commit, ending)['rows'], batch=batch)['requests_per_s'] / 1e6:,.0f}"


@block("lab-packet-steps")
def packet_steps() -> str:
    lines, shown = [], []
    for what, commit, small, large, memory, alone in STEPS:
        shown += [study(commit, ending) for ending in (small, large, memory, alone)]
        one_us = only(study(commit, alone)["rows"], batch=1)["batch_p50_us"]
        rates = (rate(commit, small, 4096), rate(commit, large, 65536), rate(commit, memory, 65536))
        lines.append((what, commit, *rates, microseconds(one_us)))
    head = ("M gets/s; step", "commit", "4096", "65,536, copied", "65,536, GPU memory", "one get")
    return table(head, lines) + "\n\n" + source(shown, FILE)


@block("lab-set-steps")
def set_steps() -> str:
    lines, shown = [], []
    for what, commit, free, full in SET_STEPS:
        shown += [study(commit, ending) for ending in (free, full) if ending]
        lines.append(
            (what, commit, *(rate(commit, ending, batch) for ending in (free, full) for batch in (4096, 65536)))
        )
    head = ("M sets/s; step", "commit", "4096", "65,536", "4096, full store", "65,536, full")
    return table(head, lines) + "\n\n" + source(shown, FILE)
