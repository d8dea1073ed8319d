# SPDX-License-Identifier: Apache-2.0
"""Tables of the NIC cache's program (bench/nic_cache)."""

from __future__ import annotations

import statistics

from rendering.markdown import per_second, table, three
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


def latencies() -> str:
    hit, host = (median("one client", server, "p50_us") for server in (NIC, HOST))
    return f"{hit:.1f}, {host:.1f} us over veth"
