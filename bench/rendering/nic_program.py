# SPDX-License-Identifier: Apache-2.0
"""Tables of the NIC cache's program (bench/nic_cache)."""

from __future__ import annotations

import statistics

from rendering.markdown import per_second, percent, table, three
from rendering.registry import block, value
from rendering.rows import Rows, only, rows, source

FILE = "nic_cache"
HOST, NIC = "warpcached", "warpcached and NIC cache"


def cost() -> Rows:
    return [row for row in rows(FILE, measure="cost") if "frame" in row]


def median(load: str, server: str, name: str) -> float:
    return statistics.median(row[name] for row in rows(FILE, measure="veth", load=load, server=server))


@block("nic-cache-cost")
def cost_of_frames() -> str:
    lines = [
        (
            row["frame"],
            "answered" if row["answered"] else "passes",
            f"{row['ns_single']} ns",
            f"{row['ns_at_once']} ns" if "ns_at_once" in row else "",
        )
        for row in cost()
    ]
    return table(["frame", "it is", "one run", "of many runs"], lines) + "\n\n" + source(cost(), FILE)


@block("nic-cache-veth")
def over_veth() -> str:
    found = rows(FILE, measure="veth")
    loads = dict.fromkeys(row["load"] for row in found)
    servers = dict.fromkeys(row["server"] for row in found)
    lines = [
        (
            f"{load}: {server}",
            f"{median(load, server, 'p50_us'):.1f} us",
            f"{three(median(load, server, 'server_cpu_us'))} us",
            per_second(median(load, server, "requests_per_s")),
        )
        for load in loads
        for server in servers
    ]
    return table(["", "p50", "server's CPU a request", "requests/s"], lines) + "\n\n" + source(found, FILE)


@value("nic-cache-instructions")
def instructions() -> str:
    return f"{only([row for row in rows(FILE, measure='cost') if 'instructions' in row])['instructions']:,}"


@value("nic-cache-verified")
def verified() -> str:
    return f"{only([row for row in rows(FILE, measure='cost') if 'instructions' in row])['verified']:,}"


@value("nic-cache-stack")
def stack() -> str:
    """Of the largest function, and of all together."""
    found = only([row for row in rows(FILE, measure="cost") if "instructions" in row])["stack"]
    return f"{max(found)} bytes in one function, {sum(found)} in all of them"


def latencies() -> str:
    hit, host = (median("one client", server, "p50_us") for server in (NIC, HOST))
    return f"{hit:.1f}, {host:.1f} us over veth"


PARTS = (32, 16, 8, 4, 2)
PAPER_GAINS = {"a": "2", "b": "2", "c": "less", "d": "3.5"}


def hit_rows(**wanted: object) -> Rows:
    return rows(FILE, measure="hits", **wanted)


@block("nic-cache-hits")
def hits_beside_the_simulator() -> str:
    lines = []
    for workload in "abcd":
        for fill in ("reads", "frequent"):
            found = [only(hit_rows(workload=workload, fill=fill, part=part)) for part in PARTS]
            cells = (f"{percent(row['hit_ratio'])} ({percent(row['simulated'])})" for row in found)
            lines.append((f"{workload.upper()}, `{fill}`", *cells))
    head = ("gets that hit (simulated); size:", *(f"1/{part}" for part in PARTS))
    return table(head, lines) + "\n\n" + source(hit_rows(), FILE)


@value("nic-cache-hits-difference")
def largest_difference() -> str:
    return f"{100 * max(abs(row['hit_ratio'] - row['simulated']) for row in hit_rows()):.2f}"


def gain(workload: str) -> float:
    """Equation 1 as a client sees it, with the hit ratio and the latencies that were measured; the best of all sizes."""
    hit, host = (median("one client", server, "p50_us") for server in (NIC, HOST))
    ratios = [row["hit_ratio"] for row in hit_rows(workload=workload, fill="reads")]
    return max(host / (ratio * hit + (1 - ratio) * host) for ratio in ratios)


@value("nic-cache-gains")
def gains() -> str:
    return ", ".join(f"{gain(workload):.2f}" for workload in "abcd")


@block("nic-cache-mixes")
def rates_by_mix() -> str:
    """Figure 13 with servers: requests a second by the share of gets."""
    found = rows(FILE, measure="mixes")
    if not found:
        return "Not measured yet: `bench/nic_cache/run --only mixes`."
    shares = sorted({row["gets"] for row in found})
    lines = []
    for server in dict.fromkeys(row["server"] for row in found):
        mine = [row for row in found if row["server"] == server]
        cells = (statistics.median(row["requests_per_s"] for row in mine if row["gets"] == share) for share in shares)
        lines.append((server, *(per_second(cell) for cell in cells)))
    return table(("requests/s; gets:", *(percent(share, 0) for share in shares)), lines) + "\n\n" + source(found, FILE)
