# SPDX-License-Identifier: Apache-2.0
"""What is simulated for each figure: arguments of nic-cache-sim, and which figures draw from it."""

from __future__ import annotations

from dataclasses import dataclass

WORKLOADS = "a,b,c,d"
PARTS = (32, 16, 8, 4, 2)  # the cache is one of these parts of memcached
SIZES = ",".join(f"1/{part}" for part in PARTS)
RECORDS = 1 << 20
SLOT_BYTES = 512
TAG_WIDTHS = (0, 1, 2, 3, 4, 5, 7, 12, 17)
REQUEST_COUNTS = (1 << 18, 1 << 20, 1 << 22)
SHORT = ("--requests", str(RECORDS // 4))
LONG = ("--requests", str(16 * RECORDS))
SEEDS = "8"
REPLY_DELAYS = "1,4,16,31,64,256,1024"
GET_SHARES = "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.95,1"
HOST_US = (5, 7, 10, 15, 20, 30, 50, 70, 100)
# Section 5: 17 bits of tag, a valid and a use bit for each entry.
PAPER_ENTRY_BITS = 19
# What a hit in an FPGA takes with the network: 3.5 to 4.5 us (HotCloud 2013).
FPGA_HIT_US = 4
FPGA_NETWORK_US = 1


@dataclass(frozen=True)
class Experiment:
    """Calls of the simulator whose rows carry one name."""

    name: str
    what: str
    calls: tuple[tuple[str, ...], ...]


def run(*arguments: str, workloads: str = WORKLOADS) -> tuple[str, ...]:
    return ("run", "-w", workloads, *arguments)


def budget(part: int) -> int:
    """Bits of block memory of the paper's table whose cache is such a part of memcached."""
    return RECORDS // part * PAPER_ENTRY_BITS


def tag_calls() -> tuple[tuple[str, ...], ...]:
    """Figure 15: (a) rows kept; (b) block memory kept; (c) and fully used, as section 6 does."""
    common = ("--allocate", "none")
    widths = ",".join(map(str, TAG_WIDTHS))
    budgets = ",".join(f"bits:{budget(part)}" for part in PARTS)
    return (
        run("-s", SIZES, "--tag-bits", widths, *common, workloads="a"),
        run("-s", budgets, "--tag-bits", widths, *common, workloads="a"),
        run("-s", budgets, "--tag-bits", "2", "--ways", "4", *common, workloads="a"),
        run("-s", budgets, "--tag-bits", "1", "--ways", "2", *common, workloads="a"),
        run("-s", budgets, "--tag-bits", "0", "--ways", "1", *common, workloads="a"),
    )


def size_calls() -> tuple[tuple[str, ...], ...]:
    """Facebook's item sizes: 32 MiB of DRAM in front of 2^20 items, slots against blocks."""
    common = ("-s", "dram:33554432", "--sizes", "etc", "--allocate", "safe")
    calls = []
    for workload in ("a", "d"):
        for storage in ("slots", "blocks"):
            slots = ("--storage", storage, "--slot-bytes", "64,128,256,512,1024,2048")
            calls.append(run(*slots, *common, workloads=workload))
    return tuple(calls)


EXPERIMENTS = (
    Experiment(
        "patterns",
        "figures 4 to 6: how the workloads ask for their keys",
        (("trace", "-w", WORKLOADS, "--points", "200"),),
    ),
    Experiment(
        "replacement",
        "figures 7 and 8: replacement, associativity, size",
        (run("-s", SIZES, "-r", "fifo,lru,lfu", "--ways", "1,2,4,8"),),
    ),
    Experiment(
        "pseudo-lru",
        "tree and bit pseudo-LRU beside figure 7",
        (run("-s", SIZES, "-r", "lru,tree-plru,bit-plru", workloads="a,d"),),
    ),
    Experiment(
        "allocate",
        "figure 9: with and without read-allocate",
        (run("-s", SIZES, "-r", "lru", "--allocate", "none,safe"),),
    ),
    Experiment(
        "hardware",
        "figure 14: the hardware's policies, associativity and size",
        (run("-s", SIZES, "--ways", "1,2,4,8", "--allocate", "none"),),
    ),
    Experiment(
        "seeds",
        "figure 9 with several seeds",
        (run("-s", SIZES, "-r", "lru", "--allocate", "none,safe", "--seeds", SEEDS),),
    ),
    Experiment(
        "long",
        "figure 9: B with 16 requests for each record",
        (run(*LONG, "-s", SIZES, "-r", "lru", "--allocate", "none,safe", workloads="b"),),
    ),
    Experiment(
        "policies",
        "replacements after the paper: SIEVE, S3-FIFO and the server's",
        (run("-s", SIZES, "-r", "lru,lfu,sieve,s3fifo,two-generations", "--seeds", "3"),),
    ),
    Experiment("model", "figure 13: throughput from table 5", (("model", "--gets", GET_SHARES),)),
    Experiment("tags", "figure 15: tag widths", tag_calls()),
    Experiment(
        "write",
        "what reaches the host: written back or forwarded",
        (run("-s", SIZES, "-r", "lru", "--write", "back,forward", workloads="a,b,d"),),
    ),
    Experiment(
        "host",
        "exact LRU and our own store as the memcached",
        (run("-s", "1/16,1/4", "-r", "lru", "--host", "lru,store", workloads="a,d"),),
    ),
    Experiment(
        "safe",
        "read-allocate while replies are under way, unsafe and safe",
        (
            run(
                *("-s", "1/4", "-r", "lru", "--allocate", "unsafe,safe"),
                *("--reply-after", REPLY_DELAYS, "--inflight", "1024"),
                workloads="a,b,d",
            ),
        ),
    ),
    Experiment("sizes", "items of varying sizes", size_calls()),
    Experiment(
        "length",
        "how the figures depend on the number of requests",
        tuple(
            run("-s", "1/32,1/4,1/2", "-r", "lru,lfu", "--allocate", "none,safe")
            + ("--requests", str(count))
            for count in REQUEST_COUNTS
        ),
    ),
    Experiment(
        "short",
        "figures 7, 8, 9 and 14 with a quarter of the requests",
        (
            run(*SHORT, "-s", SIZES, "-r", "fifo,lru,lfu", "--ways", "1,2,4,8", workloads="a,d"),
            run(*SHORT, "-s", SIZES, "-r", "lru", "--allocate", "none,safe"),
        ),
    ),
    Experiment(
        "zipf",
        "YCSB's scrambled Zipf beside Zipf's law over the same keys",
        tuple(
            run("-s", SIZES, "-r", "lru", "--keys", keys, workloads="a")
            for keys in ("ycsb-scrambled", "zipf:0.99")
        ),
    ),
    Experiment(
        "today",
        "equation 1 with other latencies: a hit of an FPGA of 2013, hosts from 5 us",
        tuple(
            ("model", "--gets", "1", "--miss-rate", "0.05,0.1,0.2,0.3,0.45,0.6")
            + ("--host-us", str(host), "--nic-us", str(FPGA_HIT_US))
            + ("--network-us", str(FPGA_NETWORK_US))
            for host in HOST_US
        ),
    ),
)
NAMES = tuple(experiment.name for experiment in EXPERIMENTS)
