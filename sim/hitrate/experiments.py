# SPDX-License-Identifier: Apache-2.0
"""What is simulated: arguments of hash-sim for each experiment, and what papers say about it."""

from __future__ import annotations

from dataclasses import dataclass

MILLION = 1_000_000
KEYS = 10 * MILLION
CAPACITIES = tuple(n * MILLION for n in (2, 4, 6, 8, 10, 12, 14, 16))
SCALE = 40  # cuckoo hashing, whose failed insertions cost 512 steps each, is simulated so much smaller

# The dissertation's request streams (4.3.2): YCSB's, 95% GET and 5% SET. What it leaves open is
# decided in docs/simulators/hash-sim.md. MemC3's generator, which it used, has no inserts; "latest"
# is YCSB's workload D, which has.
STREAMS = {
    "zipf": ("--keys", "ycsb-scrambled", "--mix", "b"),
    "latest-updates": ("--keys", "latest:0.99", "--mix", "b"),
    "latest": ("--keys", "latest:0.99", "--mix", "d"),
    "uniform": ("--keys", "uniform", "--mix", "b"),
}
TABLES = ("chained:lru", "set:16:lru", "hopscotch", "strided")
CUCKOOS = ("cuckoo", "cuckoo:4")
WAYS = (1, 2, 4, 8, 16, 32, 64)
IN_SETS = ("lru", "random", "fifo", "clock", "sieve", "s3fifo", "duel")
IN_CHAINS = ("lru", "fifo", "clock", "sieve", "s3fifo")

# Steady state: the first third of the requests is not counted.
STEADY_KEYS = 200_000
STEADY = ("--key-count", str(STEADY_KEYS), "--requests", "3000000", "--warm-up", "1000000",
          "--no-load")
PATTERNS = {
    "zipf": ("--keys", "zipf:0.99"),
    "latest": ("--keys", "latest:0.99", "--mix", "d"),
    "one-hit wonders": ("--keys", "zipf:0.99", "--one-hits", "0.2"),
    "scans": ("--keys", "zipf:0.99", "--scans", "0.2", "--scan-length", "10000"),
    "drift": ("--keys", "drift:0.99:20"),
}
SHARES = (0.1, 0.2)  # of the keys, that the cache can hold

# By bytes: the request stream of bench/memory.
SIZED = ("--sizes", "etc", "--no-load")
LARGE = ("--key-count", "2000000", "--requests", "4000000", "--warm-up", "1500000")
# A quarter of it, for the many runs that thresholds take.
# The main generation takes long to fill.
QUARTER = ("--key-count", "500000", "--requests", "4000000", "--warm-up", "2500000")
OVERWRITES = ("--mix", "90:10")
# Bytes that an item takes beside key and value: the store's header, rounding and index. The other
# policies get the same, so that only the policies differ.
OVERHEAD = ("--overhead", "56")
YOUNG = (10, 20, 30, 50)
WASTE = (10, 15, 35, 50)


@dataclass(frozen=True)
class Experiment:
    name: str
    arguments: tuple[str, ...]
    caches: tuple[str, ...]
    sizes: tuple[str, ...]  # --capacity or --memory and its values
    labels: tuple[tuple[str, str], ...] = ()  # added to each row

    def command(self) -> list[str]:
        return [*self.arguments, "--cache", *self.caches, *self.sizes]


def capacities(values) -> tuple[str, ...]:
    return ("--capacity", *(str(int(value)) for value in values))


def tables() -> list[Experiment]:
    """Figures 4.7 a to c."""
    found = []
    small = ("--key-count", str(KEYS // SCALE), "--requests", str(KEYS // SCALE))
    for stream, arguments in STREAMS.items():
        label = (("stream", stream),)
        found.append(Experiment("tables", arguments, TABLES, capacities(CAPACITIES), label))
        fewer = capacities(n // SCALE for n in CAPACITIES)
        caches = (*TABLES, *CUCKOOS)
        found.append(Experiment("tables-small", (*arguments, *small), caches, fewer, label))
    return found


def ways() -> list[Experiment]:
    """Figure 4.8."""
    caches = ("chained:lru", *(f"set:{n}:lru" for n in WAYS))
    return [Experiment("ways", STREAMS["zipf"], caches, capacities(CAPACITIES))]


def poisson() -> list[Experiment]:
    """Figure 4.7c: uniform keys where a set's number of keys is Poisson distributed."""
    sizes = capacities([1 << 23, KEYS])
    return [Experiment("poisson", STREAMS["uniform"], ("chained:lru", "set:16:lru"), sizes)]


def scrambling() -> list[Experiment]:
    """What the 8 million entries' figures become with other readings of "Zipf"."""
    found = []
    for keys in ("ycsb-scrambled", "ycsb-zipf:0.99", "zipf:0.99", "zipf-ranks:0.99"):
        caches = ("chained:lru", "set:1:lru", "set:16:lru")
        sizes = capacities([8 * MILLION])
        found.append(Experiment("scrambling", ("--keys", keys, "--mix", "b"), caches, sizes))
    return found


def evictions() -> list[Experiment]:
    """Policies in sets of 16 and over all items, in steady state."""
    caches = (
        *(f"set:16:{name}" for name in IN_SETS),
        *(f"chained:{name}" for name in IN_CHAINS),
        "two-generations",
    )
    sizes = capacities(share * STEADY_KEYS for share in SHARES)
    return [
        Experiment("evictions", (*STEADY, *pattern), caches, sizes, (("pattern", name),))
        for name, pattern in PATTERNS.items()
    ]


def sized_arguments(pattern: tuple[str, ...], amount: tuple[str, ...]) -> tuple[str, ...]:
    mix = () if "--mix" in pattern else OVERWRITES
    return (*SIZED, *amount, *OVERHEAD, *pattern, *mix)


def sized() -> list[Experiment]:
    """The store and its model beside other policies, by bytes."""
    caches = ("store", "two-generations", *(f"chained:{name}" for name in IN_CHAINS))
    return [
        Experiment(
            "sized",
            sized_arguments(pattern, LARGE),
            caches,
            ("--memory", "64M"),
            (("pattern", name),),
        )
        for name, pattern in PATTERNS.items()
    ]


def thresholds() -> list[Experiment]:
    """The store's model with other shares of the young generation, of waste, and counters."""
    caches = [f"two-generations:{young}" for young in YOUNG]
    caches += [f"two-generations:20:{waste}" for waste in WASTE]
    caches += [f"two-generations:20:25:{most}" for most in (1, 7)]
    caches += ["two-generations:20:25:3:2", "chained:lru", "chained:sieve", "chained:s3fifo"]
    return [
        Experiment(
            "thresholds",
            sized_arguments(pattern, QUARTER),
            tuple(caches),
            ("--memory", "16M"),
            (("pattern", name),),
        )
        for name, pattern in PATTERNS.items()
        if name in ("zipf", "drift")
    ]


# Look-aside: a get that misses is followed by a set; nothing is loaded and nothing warmed up. The
# cache has shares of the bytes of all that is asked for.
ETC = ("--sizes", "etc", "--key-count", "2000000", "--requests", "2000000")
LOOK_ASIDE = ("--mix", "c", "--no-load")
BLOCK_SIZES = "steps:16:512=8,4096=12,16384=10,65536=70"
SIZED_STREAMS = {
    "block": ("--keys", "zipf:0.7", "--key-count", "28000", "--requests", "114000", "--loops", "0.35",
              "--loop-length", "400", "--loop-count", "20", "--one-hits", "0.18",
              "--sizes", BLOCK_SIZES),
    "scans": (*ETC, "--keys", "zipf:0.9", "--scans", "0.3", "--scan-length", "20000"),
    "etc": (*ETC, "--keys", "zipf:0.99"),
    "drift": (*ETC, "--keys", "drift:0.99:10"),
    "one-timers": (*ETC, "--keys", "zipf:0.99", "--one-hits", "0.4"),
    "ttl": (*ETC, "--keys", "zipf:0.99", "--rate", "10000", "--ttl", "60", "--ttl-every", "2"),
}
SIZED_POLICIES = ("lru", "sieve", "s3fifo", "w-tinylfu", "lirs", "gdsf", "lhd", "farthest")
FOOTPRINT_SHARES = ("--share", "0.01", "0.03", "0.1", "0.3")
# young, waste, counter's most and least, ghosts, by size
ABLATIONS = ("10", "50", "20:25:3:2", "20:25:3:1:90", "20:25:3:1:0:4", "20:25:3:1:0:2",
             "20:25:3:1:90:4")


def streams() -> list[Experiment]:
    """Policies, the store and its model over streams with sizes, by shares of the footprint."""
    caches = ("store", "two-generations", *(f"chained:{name}" for name in SIZED_POLICIES))
    return [
        Experiment("streams", (*LOOK_ASIDE, *OVERHEAD, *stream), caches, FOOTPRINT_SHARES,
                   (("stream", name),))
        for name, stream in SIZED_STREAMS.items()
    ]  # fmt: skip


def gdsf_powers() -> list[Experiment]:
    """Between no regard to size and GDSF: what objects cost in bytes."""
    caches = ("chained:gdsf-25", "chained:gdsf-50", "chained:gdsf-75")
    return [
        Experiment("gdsf-powers", (*LOOK_ASIDE, *OVERHEAD, *stream), caches, FOOTPRINT_SHARES,
                   (("stream", name),))
        for name, stream in SIZED_STREAMS.items()
    ]  # fmt: skip


def ablation() -> list[Experiment]:
    """What the store loses by its segments, and its model by each of its rules."""
    caches = ["store:64", "store:128", "store:256"]
    caches += [f"two-generations:{rules}" for rules in ABLATIONS]
    caches += ["chained:s3fifo-empty-main", "chained:s3fifo-few-ghosts"]
    return [
        Experiment("ablation", (*LOOK_ASIDE, *OVERHEAD, *stream), tuple(caches),
                   ("--share", "0.03", "0.1"), (("stream", name),))
        for name, stream in SIZED_STREAMS.items()
    ] + [
        Experiment("ablation", (*LOOK_ASIDE, *OVERHEAD, *SIZED_STREAMS["block"]),
                   ("store:512", "store:1024"), ("--share", "0.03", "0.1"), (("stream", "block"),))
    ]  # fmt: skip


def expiry() -> list[Experiment]:
    """Half of the keys live for a while: what the store's bulk expiry is worth."""
    caches = ("store", "two-generations", "chained:lru", "chained:s3fifo")
    return [
        Experiment(
            "expiry",
            (*sized_arguments(PATTERNS["zipf"], LARGE), "--rate", "10000", "--ttl", str(ttl),
             "--ttl-every", "2"),
            caches,
            ("--memory", "64M"),
        )
        for ttl in (10, 60, 300)
    ]


EXPERIMENTS = {
    "tables": tables,
    "ways": ways,
    "poisson": poisson,
    "scrambling": scrambling,
    "evictions": evictions,
    "sized": sized,
    "thresholds": thresholds,
    "expiry": expiry,
    "streams": streams,
    "gdsf-powers": gdsf_powers,
    "ablation": ablation,
}
