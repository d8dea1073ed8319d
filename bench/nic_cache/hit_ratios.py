# SPDX-License-Identifier: Apache-2.0
"""Hit ratios of the NIC cache beside nic-cache-sim's, for the same requests.

The simulator makes the requests of YCSB's workloads and writes them to a file. Two play the file: nic_cache_hits, through the
program and the table of copies, a step at a time; and warpcache-load, one request after the other over a veth pair, through a
server that copies what was missed a millisecond or so later. Copies of these items take 128 bytes, so a megabyte has 8192 ways:
the simulator's cache has as many entries, in rows of 8 with a tree of pseudo-LRU, and drops an item that is set, as the server
does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.exchange import ask_stats
from harness.programs import find_load_generator, find_program
from harness.servers import find_target, start_server
from harness.veth import HOST, NEAR, Link

WORKLOADS = ("a", "b", "c", "d")
FILLS = {"reads": "all", "frequent": "frequent"}  # of the server, and the simulator's --admit
WAYS_PER_MB = 8192
RECORDS = 1 << 18
MEMORY_MB = (1, 2, 4, 8, 16)  # 1/32 to 1/2 of the records
SIZES = ("--sizes", "fixed:8:16")
UDP_PORT = 11311
SERVED_PER_S = 4000  # requests: few enough that copies are there before the key is asked for again
TIME_S_MAX = 900


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX)
    if done.returncode != 0:
        sys.exit(f"bench/nic_cache/run: {' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def program(name: str, variable: str) -> str:
    found = find_program(name, variable)
    if found is None:
        sys.exit(f"bench/nic_cache/run: {name} is not built")
    return str(found)


class Simulator:
    def __init__(self, requests: int):
        self.program = program("nic-cache-sim", "NIC_CACHE_SIM")
        self.stream = ("-n", str(RECORDS), "--requests", str(requests), *SIZES)

    def write_requests(self, workload: str, path: Path) -> None:
        run(self.program, "trace", "-w", workload, *self.stream, "--write-trace", str(path))

    def hit_ratios(self, workload: str, fill: str) -> dict[int, float]:
        """By megabytes of copies."""
        sizes = ",".join(f"1/{part_of(megabytes)}" for megabytes in MEMORY_MB)
        cache = ("-s", sizes, "--slot-bytes", "24", "-r", "tree-plru", "--tag-bits", "16")
        policies = ("--write", "invalidate", "--admit", FILLS[fill])
        out = run(self.program, "run", "-w", workload, *self.stream, *cache, *policies, "-q", "--json", "-")
        found = [json.loads(line) for line in out.splitlines()]
        return {row["rows"] * row["ways"] // WAYS_PER_MB: 1 - row["miss_rate"] for row in found}


def part_of(megabytes: int) -> int:
    return RECORDS // (WAYS_PER_MB * megabytes)


def played(path: Path, megabytes: int, fill: str) -> dict:
    """By the program and the table alone."""
    row = json.loads(run(program("nic_cache_hits", "NIC_CACHE_HITS"), str(path), str(megabytes), fill))
    return {**row, "hit_ratio": row["hits"] / row["gets"]}


def served(link: Link, path: Path, requests: int, megabytes: int, fill: str) -> dict:
    """By a server."""
    options = ["-l", HOST, "-U", str(UDP_PORT), "-t", "1", "-m", "512", "--udp-allow=10.8.0.0/24"]
    options += [f"--nic-cache={NEAR},native", f"--nic-cache-memory={megabytes}", f"--nic-cache-fill={fill}"]
    server = start_server(find_target("warpcached"), options)
    try:
        load = [str(find_load_generator()), "--distribution", f"trace:{path}", "--threads", "1"]
        load += ["--connections", "1", "--quiet", "--json", "-"]
        # All items, over TCP and loopback.
        run(*load, f"127.0.0.1:{server.port}", "--requests", "1")
        play = [*load, f"{HOST}:{UDP_PORT}", "--udp", "--no-fill", "--warm-up", "0", "--rate", str(SERVED_PER_S)]
        report = json.loads(link.in_far(lambda: run(*play, "--requests", str(requests))))
        with server.connect() as sock:
            stats = ask_stats(sock, "nic")
    finally:
        server.stop()

    def count(name: str) -> int:
        return sum(int(value) for key, value in stats.items() if key.startswith("queue") and key.endswith("_" + name))

    gets = count("hits") + count("misses")
    return {"gets": gets, "hits": count("hits"), "hit_ratio": count("hits") / gets, "lost": report["lost"]}


def hit_ratios(requests: int, link: Link | None = None) -> list[dict]:
    """By a server at the near end of the link; without one by the program and the table alone."""
    simulator = Simulator(requests)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for workload in WORKLOADS:
            path = Path(folder) / workload
            simulator.write_requests(workload, path)
            for fill in FILLS:
                simulated = simulator.hit_ratios(workload, fill)
                for megabytes in MEMORY_MB:
                    row = played(path, megabytes, fill) if link is None else served(link, path, requests, megabytes, fill)
                    about = {"workload": workload, "fill": fill, "part": part_of(megabytes), "requests": requests}
                    found.append({**about, **row, "simulated": round(simulated[megabytes], 6)})
                    text = f"{row['hit_ratio']:.4f}, simulated {simulated[megabytes]:.4f}"
                    print(f"{workload} {fill} 1/{part_of(megabytes)}: {text}", file=sys.stderr)
    return found
