# SPDX-License-Identifier: Apache-2.0
"""Goals, bounds and the table of what was measured."""

from __future__ import annotations

P99_MS_MAX = 5.0
LONGEST_MS_MAX = 50.0
END_S_MAX = {"SIGTERM": 1.0, "SIGUSR1": 10.0}
CLOSE_WAIT_S_MAX = 1.0

# What warpcached may occupy: docs/compatibility.md, "Memory".
MEMORY_MIB = 64
OVERHEAD_MIB = 6
OVERHEAD_MIB_THREAD = 2.5
BUSY_CONNECTION_KIB = 80
UNSENT_MIB_THREAD = 64
WALK_MIB = 1
WALKS_MAX = 1

GOALS = (
    f"goals: p99 <= {P99_MS_MAX:.0f} ms, longest <= {LONGEST_MS_MAX:.0f} ms (a quiet machine), "
    f"memory within the bound (-m, overhead, {UNSENT_MIB_THREAD} MiB of replies a thread, "
    f"{WALK_MIB} MiB a walk),\n"
    f"SIGTERM <= {END_S_MAX['SIGTERM']:.0f} s, SIGUSR1 <= {END_S_MAX['SIGUSR1']:.0f} s, "
    f"closed connections gone within {CLOSE_WAIT_S_MAX:.0f} s. A * marks what misses its goal."
)

HEAD = (
    "scenario",
    "program",
    "p50 ms",
    "p99 ms",
    "longest ms",
    "quiet longest",
    "peak MiB (bound)",
    "answer s",
    "end s",
    "CLOSE-WAIT s (most)",
)


def bound_mib(threads: int, connections: int) -> float:
    overhead = OVERHEAD_MIB + threads * OVERHEAD_MIB_THREAD + MEMORY_MIB / 256
    busy = connections * BUSY_CONNECTION_KIB / 1024
    unsent = threads * UNSENT_MIB_THREAD + WALKS_MAX * WALK_MIB
    return round(MEMORY_MIB + overhead + busy + unsent, 1)


def against(value: float | None, goal: float, form: str) -> str:
    if value is None:
        return ""
    return form.format(value) + ("*" if value > goal else "")


def end_cell(row: dict) -> str:
    if row["killed_for_memory"]:
        return "killed (memory)*"
    if row["end_s"] is None:
        return "killed*"
    return against(row["end_s"], END_S_MAX[row["end_signal"]], "{:.2f}")


def cells(row: dict) -> tuple[str, ...]:
    quiet = row["quiet_longest_ms"]
    answer = row["answer_s"]
    return (
        row["scenario"],
        row["program"],
        "" if row.get("p50_ms") is None else f"{row['p50_ms']:.2f}",
        against(row.get("p99_ms"), P99_MS_MAX, "{:.2f}"),
        (">" if row.get("failed") else "") + against(row.get("longest_ms"), LONGEST_MS_MAX, "{:.1f}"),
        "" if quiet is None else f"{quiet:.1f}",
        against(row["peak_mib"], row["bound_mib"], "{:.0f}") + f" ({row['bound_mib']:.0f})",
        "" if answer is None else f"{answer:.2f}",
        end_cell(row),
        against(row["close_wait_longest_s"], CLOSE_WAIT_S_MAX, "{:.1f}")
        + f" ({row['close_wait_most']})",
    )


def text_table(rows: list[dict]) -> str:
    lines = [HEAD, *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
