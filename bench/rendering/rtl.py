# SPDX-License-Identifier: Apache-2.0
"""Tables of the simulated core (rtl/)."""

from __future__ import annotations

from rendering.markdown import table
from rendering.registry import block, value
from rendering.rows import Rows, only, pick, rows, source

CYCLES = "rtl_cycles"
SYNTHESIS = "rtl_synthesis"
TESTS = "rtl_tests"
LANES = "rtl_lanes"
HITS = "rtl_hits"
NIC = "rtl_nic"
HAZARDS = "rtl_hazards"
NIC_HITS = "text get, 6 B keys, 6 B values, 0% miss"


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


def nic_cells() -> str:
    """Of the NIC cache, for the table of the papers."""
    row = only(rows(SYNTHESIS), what="nic_cache", top="nic_cache")
    return f"{row['lut4']:,}, {row['ebr']}"


def nic_rate() -> str:
    """Likewise, of gets that hit."""
    return f"{millions(only(rows(NIC), what=NIC_HITS)['rate_at_10g_156mhz'])} M hits/s"


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


@block("rtl-goals")
def goals() -> str:
    """What was aimed at, beside the rows of the other tables."""
    found: Rows = rows(CYCLES)
    lanes_found: Rows = rows(LANES)

    def six(workload: str) -> dict:
        return only(found, workload=workload, key_bytes=6, value_bytes=6)

    def cycles_of(workload: str) -> tuple[str, float]:
        cycles = six(workload)["cycles_a_request"]
        return f"{cycles:.2f} cycles", cycles

    def rate(row: dict, field: str) -> tuple[str, float]:
        return f"{millions(row[field])} M/s", -row[field]

    core, wire = "rate_core_156mhz", "rate_at_10g_156mhz"
    get, put = six("binary get"), six("binary set")
    latency = get["latency_cycles_mean"]

    def alone(what: str) -> tuple[str, float]:
        cycles = only(rows(NIC), what=what)["cycles_mean"]
        return f"{cycles:.0f} cycles", cycles

    # What, the goal, what was measured with a figure that is to be small, and the bound of that figure.
    lines = [
        ("get that hits, in the paper's framing", "12 cycles, 13.02 M/s", cycles_of("binary get"), 12.0),
        ("get that hits, in memcached's framing", "13.5 cycles, 11.57 M/s", rate(get, wire), -11.57e6),
        ("set, at 10 Gb/s", "10.59 M/s", rate(put, wire), -10.59e6),
        ("quiet gets, at 10 Gb/s", "35 M/s", rate(six("binary quiet get"), wire), -35e6),
        ("quiet gets, core", "35 M/s", rate(six("binary quiet get"), core), -35e6),
        ("keys of multigets, at 10 Gb/s", "45 M/s", rate(six("text multiget"), wire), -45e6),
        ("latency of a get, mean", "160 cycles", (f"{latency:.0f} cycles", latency), 160.0),
        ("keys of multigets, 8 lanes", "115 M/s", rate(only(lanes_found, lanes=8), core), -115e6),
        ("NIC cache, get that hits, at 10 Gb/s", "11.90 M/s", rate(only(rows(NIC), what=NIC_HITS), "rate_at_10g_156mhz"), -11.9e6),
        ("NIC cache, get that hits, latency, mean", "1 us, 156 cycles", alone("get that hits, to its reply"), 156.0),
        ("NIC cache, what a get that misses takes more", "64 cycles", alone("get that misses, to the host"), 64.0),
    ]
    texts = [(what, goal, measured, "yes" if figure <= bound else "no") for what, goal, (measured, figure), bound in lines]
    of_nic = rows(NIC)
    return table(("6 B keys, 6 B values", "goal", "measured", "met"), texts) + "\n\n" + source(found + lanes_found + of_nic, CYCLES, LANES, NIC)


def workload_and_size(row: dict) -> tuple:
    return row["workload"], row["part"]


@block("rtl-hits")
def hits() -> str:
    found: Rows = sorted(rows(HITS), key=workload_and_size)
    parts = sorted({row["part"] for row in found}, reverse=True)
    lines = []
    for workload in sorted({row["workload"] for row in found}):
        of = {row["part"]: row for row in found if row["workload"] == workload}
        lines.append((workload.upper(), *(f"{of[part]['hit_ratio']:.2%} ({of[part]['simulated']:.2%})" for part in parts)))
    head = ("gets that hit (simulated); of the items fit:", *(f"1/{part}" for part in parts))
    return table(head, lines) + "\n\n" + source(found, HITS)


@value("rtl-hits-difference")
def hits_difference() -> str:
    return f"{100 * max(abs(row['hit_ratio'] - row['simulated']) for row in rows(HITS)):.2f}"


@block("rtl-lanes")
def lanes() -> str:
    found: Rows = rows(LANES)
    lines = [
        (f"{name(row)}, {row['lanes']} lanes", f"{row['cycles_a_request']:.2f}", millions(row["rate_core_156mhz"]))
        for row in found
    ]
    return table(("requests", "cycles", "M/s, core"), lines) + "\n\n" + source(found, LANES)


def mix(row: dict) -> tuple:
    """Which stream of gets and sets it is."""
    return row["requests_a_datagram"], row["zipf"], row["set_percent"], row["value_bytes"]


@block("rtl-hazards")
def hazards() -> str:
    """Each stream on the first core that was measured, in which operations wait, and on the last one."""
    found: Rows = rows(HAZARDS)
    lines = []
    shown = []
    for stream in sorted({mix(row) for row in found}):
        of = sorted((row for row in found if mix(row) == stream), key=lambda row: row["date"])
        first, last = of[0], of[-1]
        shown += [first, last]
        batch, zipf, percent, value_bytes = stream
        lines.append(
            (
                f"{percent}% sets, {value_bytes} B values" + (f", {batch} in a datagram" if batch > 1 else ""),
                f"Zipf {zipf}" if zipf else "alike",
                f"{max(last['wire_cycles_in'], last['wire_cycles_out']):.2f}",
                *(text for row in (first, last) for text in (f"{row['cycles_a_request']:.2f}", f"{row['stalled']:.0%}")),
            )
        )
    head = ("requests", "keys", "cycles of the wire", "all wait", "stalled", "some follow", "stalled")
    return table(head, lines) + "\n\n" + source(shown, HAZARDS)


def hazards_gain(**of: object) -> str:
    """How many times as many requests a second as the core in which all wait, at most."""
    found: Rows = rows(HAZARDS, **of)
    gains = []
    for stream in {mix(row) for row in found}:
        same = sorted((row for row in found if mix(row) == stream), key=lambda row: row["date"])
        gains.append(same[0]["cycles_a_request"] / same[-1]["cycles_a_request"])
    return f"{max(gains):.2f}"


@value("rtl-hazards-gain")
def hazards_gain_popular() -> str:
    return hazards_gain(zipf=0.99)


@value("rtl-hazards-gain-alike")
def hazards_gain_alike() -> str:
    return hazards_gain(zipf=0.0)


@block("rtl-nic")
def nic() -> str:
    found: Rows = rows(NIC)
    alone = [row for row in found if "cycles_mean" in row]
    streams = [row for row in found if "cycles_a_request" in row]
    lines = [(r["what"], f"{r['cycles_mean']:.1f}", f"{r['cycles_min']} to {r['cycles_max']}") for r in alone]
    text = table(("a frame alone", "cycles, mean", "range"), lines)
    head = ("a stream of frames", "cycles", "of the wire", "M/s", "M/s, at 10 Gb/s", "answered")
    more = [
        (
            row["what"],
            f"{row['cycles_a_request']:.2f}",
            f"{row['wire_cycles']:.2f}",
            millions(row["rate_156mhz"]),
            millions(row["rate_at_10g_156mhz"]),
            f"{row['answered'] / row['requests']:.1%}",
        )
        for row in streams
    ]
    return text + "\n\n" + table(head, more) + "\n\n" + source(found, NIC)


# What the papers say of their cores: 003's table 3, and 004's section on resources, which gives round numbers.
PAPERS = (
    ("Fukuda et al. (003), with MAC and PCIe", "Virtex-5", "60,314", "64,505", "238 of 36 kbit"),
    ("Blott et al. (004)", "Virtex-6", "about 80,000", "about 63,000", "not said"),
)
CELLS = {"ECP5": ("lut4", "ff", "ebr", "lut_ram", "carry"), "UltraScale+": ("lut", "lut_ram", "ff", "bram18")}
NO_BLOCKS = ("joints", "FIFOs between blocks")  # what is between them
HEADS = {
    "ECP5": ("LUT4", "flip-flops", "block memories", "distributed memories", "carry cells"),
    "UltraScale+": ("LUTs", "of memories", "flip-flops", "block memories"),
}


def counts(row: dict) -> list[str]:
    return [f"{row[cell]:,}" for cell in CELLS[row["device"]]]


def cells_of_blocks(found: Rows, device: str, top: str) -> str:
    """Of each block, and of all together."""
    of = [row for row in found if row["device"] == device and row["top"] == top]
    names = [(row["what"].removeprefix("block "), row) for row in of if row["what"].startswith("block ")]
    blocks = [(name if name in NO_BLOCKS else f"`{name}`", *counts(row)) for name, row in names]
    sums = [("together", *counts(row)) for row in of if row["what"] == f"{top}, sum of blocks"]
    return table((f"blocks of `{top}`, {device}", *HEADS[device]), blocks + sums)


def clock(found: Rows, top: str) -> str:
    clocks = [row["fmax_mhz"] for row in found if row["what"] == "place and route" and row["top"] == top]
    if not clocks:
        return "not placed"
    if len(clocks) == 1:
        return f"{clocks[0]:.1f} MHz, 1 seed"
    return f"{min(clocks):.1f} to {max(clocks):.1f} MHz, {len(clocks)} seeds"


@value("rtl-clock")
def core_clock() -> str:
    return clock(rows(SYNTHESIS), "mc_core")


@value("rtl-clock-slowest")
def slowest_block() -> str:
    """Of the blocks that were placed alone, each with its best seed."""
    best: dict[str, float] = {}
    for row in rows(SYNTHESIS, what="place and route"):
        if row["top"] not in ("mc_core", "nic_cache"):
            best[row["top"]] = max(best.get(row["top"], 0.0), row["fmax_mhz"])
    block_name, mhz = min(best.items(), key=lambda item: item[1])
    return f"`{block_name}`, {mhz:.1f} MHz"


@value("rtl-clock-before")
def clock_before() -> str:
    found = [row["fmax_mhz"] for row in rows(SYNTHESIS, what="place and route, an earlier core")]
    return f"{min(found):.1f} to {max(found):.1f} MHz, {len(found)} seeds"


@value("rtl-clock-first")
def clock_first() -> str:
    return f"{only(rows(SYNTHESIS), what='place and route, the first core')['fmax_mhz']:.1f} MHz"


BEFORE = ", an earlier core"  # of the store in which all operations wait


@value("rtl-hazards-cost")
def hazards_cost() -> str:
    """Cells of the store beside those of one in which all operations wait."""
    found = rows(SYNTHESIS, top="mc_store")
    after, before = only(found, what="mc_store"), only(found, what="mc_store" + BEFORE)
    luts, flip_flops, memories = (after[cell] - before[cell] for cell in ("lut4", "ff", "ebr"))
    return f"{luts} of {after['lut4']:,} LUTs, {flip_flops} of {after['ff']:,} flip-flops, and {memories} of {after['ebr']} block memories"


@value("rtl-hazards-clock")
def hazards_clock() -> str:
    return clock(rows(SYNTHESIS), "mc_store")


@value("rtl-hazards-clock-before")
def hazards_clock_before() -> str:
    found = [row | {"what": "place and route"} for row in rows(SYNTHESIS, what="place and route of the store" + BEFORE)]
    return clock(found, "mc_store")


@block("rtl-synthesis")
def synthesis() -> str:
    """The designs beside the papers', then the clock of each seed, then blocks."""
    found: Rows = rows(SYNTHESIS)
    tops = list(dict.fromkeys(row["top"] for row in found))
    beside = []
    for top in tops:
        for row in pick(found, what=top, top=top):
            beside.append((f"`{top}`", "ECP5", f"{row['lut4']:,}", f"{row['ff']:,}", f"{row['ebr']} of 18 kbit", clock(found, top)))
        for row in pick(found, what=f"{top}, sum of blocks", top=top, device="UltraScale+"):
            cells = (f"{row['lut']:,}", f"{row['ff']:,}", f"{row['bram18']} of 18 kbit")
            beside.append((f"`{top}`", "UltraScale+", *cells, "not placed"))
    beside += [(*paper, "not said") for paper in PAPERS]
    parts = [table(("", "family", "LUTs", "flip-flops", "block memories", "clock"), beside)]
    clocks = [(f"`{r['top']}`", r["seed"], f"{r['fmax_mhz']:.1f}") for r in found if r["what"] == "place and route"]
    if clocks:
        parts.append(table(("ECP5 85k, speed 8", "seed", "clock, MHz"), clocks))
    of_blocks = {(row["device"], row["top"]) for row in found if row["what"].startswith("block ")}
    parts += [cells_of_blocks(found, device, top) for top in tops for device in CELLS if (device, top) in of_blocks]
    return "\n\n".join([*parts, source(found, SYNTHESIS)])


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
            row["commit"],
        )
        for row in found
    ]
    return table(("run", "count", "wrong", "cycles", "program", "commit"), lines) + "\n\n" + source(found, TESTS)
