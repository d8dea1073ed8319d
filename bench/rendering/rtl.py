# SPDX-License-Identifier: Apache-2.0
"""Tables of the simulated core (rtl/)."""

from __future__ import annotations

from rendering.markdown import table
from rendering.registry import block
from rendering.rows import Rows, only, rows, source

CYCLES = "rtl_cycles"
SYNTHESIS = "rtl_synthesis"
TESTS = "rtl_tests"
LANES = "rtl_lanes"


def name(row: dict) -> str:
    batch = row["requests_a_datagram"]
    of = f", {batch} in a datagram" if batch > 1 else ""
    return f"{row['workload']}, {row['key_bytes']} B keys, {row['value_bytes']} B values{of}"


def millions(rate: float) -> str:
    return f"{rate / 1e6:.2f}"


def rate_and_latency() -> str:
    """Of binary gets, for the table of the papers."""
    row = only(rows(CYCLES), workload="binary get", key_bytes=6, value_bytes=6)
    return f"{millions(row['rate_at_10g_156mhz'])} M/s, {row['latency_cycles_mean']:.0f} cycles"


def rates_by_size() -> str:
    """Binary gets against the wire, for the table of the papers."""
    found = [row for row in rows(CYCLES, workload="binary get") if row["key_bytes"] == row["value_bytes"]]
    at_wire = [r["key_bytes"] for r in found if r["cycles_a_request"] <= max(r["wire_cycles_in"], r["wire_cycles_out"])]
    return f"the wire's up to {max(at_wire)} B"


@block("rtl-cycles")
def cycles() -> str:
    found: Rows = rows(CYCLES)
    lines = [
        (
            name(row),
            f"{row['cycles_a_request']:.2f}",
            f"{max(row['wire_cycles_in'], row['wire_cycles_out']):.2f}",
            millions(row["rate_core_156mhz"]),
            millions(row["rate_at_10g_156mhz"]),
            f"{row['latency_cycles_mean']:.0f}",
            f"{row['latency_cycles_min']} to {row['latency_cycles_max']}",
        )
        for row in found
    ]
    head = ("requests", "cycles", "of the wire", "M/s, core", "M/s, at 10 Gb/s", "latency, cycles", "range")
    return table(head, lines) + "\n\n" + source(found, CYCLES)


@block("rtl-lanes")
def lanes() -> str:
    found: Rows = rows(LANES)
    lines = [
        (f"{name(row)}, {row['lanes']} lanes", f"{row['cycles_a_request']:.2f}", millions(row["rate_core_156mhz"]))
        for row in found
    ]
    return table(("requests", "cycles", "M/s, core"), lines) + "\n\n" + source(found, LANES)


@block("rtl-synthesis")
def synthesis() -> str:
    found: Rows = rows(SYNTHESIS)
    cells = [row for row in found if row["what"] == "mc_core"]
    clocks = [row for row in found if row["what"] == "place and route"]
    lines = [
        ("LUT4", cells[0]["lut4"]),
        ("flip-flops", cells[0]["ff"]),
        ("block memories (DP16KD)", cells[0]["ebr"]),
        ("distributed memories (16 x 4)", cells[0]["lut_ram"]),
        ("carry cells", cells[0]["carry"]),
        *((f"clock, MHz, seed {row['seed']}", f"{row['fmax_mhz']:.1f}") for row in clocks),
    ]
    text = table(("ECP5 85k, speed 8", "core"), lines)
    others = [row for row in found if row.get("device") == "UltraScale+"]
    if others:
        names = ("lut", "lut_ram", "ff", "bram18", "carry8")
        head = ("UltraScale+", "LUTs", "of memories", "flip-flops", "block memories of 18 kbit", "carry cells")
        text += "\n\n" + table(head, [("core", *(row[name] for name in names)) for row in others])
    blocks = [row for row in found if row["what"].startswith("block ")]
    if blocks:
        names = ("lut4", "ff", "ebr", "lut_ram", "carry")
        head = ("block, ECP5", "LUT4", "flip-flops", "block memories", "distributed memories", "carry cells")
        of_block = [(f"`{row['what'].removeprefix('block ')}`", *(row[name] for name in names)) for row in blocks]
        text += "\n\n" + table(head, of_block)
    return text + "\n\n" + source(found, SYNTHESIS)


@block("rtl-tests")
def tests() -> str:
    found: Rows = rows(TESTS)
    lines = [
        (
            row["what"],
            f"{row['count']:,}" + (f" of {row['of']:,}" if "of" in row else ""),
            row.get("differences", ""),
            f"{row['cycles'] / 1e6:.1f} M" if "cycles" in row else "",
            f"`{row['command'].split()[0]}`",
        )
        for row in found
    ]
    return table(("run", "count", "wrong", "cycles", "program"), lines) + "\n\n" + source(found, TESTS)
