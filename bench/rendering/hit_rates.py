# SPDX-License-Identifier: Apache-2.0
"""Tables of hash-sim (sim/hitrate)."""

from __future__ import annotations

import math
import statistics

from rendering.markdown import percent, table
from rendering.registry import block, plot
from rendering.rows import Rows, only, pick, rows, source

FILE = "hash_sim"
MILLION = 1_000_000
SCALE = 40  # cuckoo hashing is simulated with so much fewer keys
SIZES = tuple(n * MILLION for n in (2, 4, 6, 8, 10, 12, 14, 16))
STREAMS = ("zipf", "latest-updates", "latest", "uniform")
PAPER_STREAMS = ("zipf", "latest-updates", "uniform")  # the dissertation's


# The dissertation's two stated points of figure 4.8, both at 8 million entries: miss rates by ways.
PAPER_WAYS = {1: 0.212, 16: 0.104}


def hit_rates(found: Rows, size: str = "capacity") -> dict[str, dict[int, float]]:
    """By cache, then by size. A later row replaces an earlier one."""
    rates: dict[str, dict[int, float]] = {}
    for row in found:
        rates.setdefault(row["cache"], {})[row[size]] = 1.0 - row["miss_ratio"]
    return rates


def misses(found: Rows, **wanted: object) -> float:
    """A later row replaces an earlier one."""
    return pick(found, **wanted)[-1]["miss_ratio"]


def million(sizes: tuple[int, ...] = SIZES) -> list[str]:
    return [f"{size // MILLION} M" for size in sizes]


def miss_bars(found: Rows, base: str) -> tuple[list[str], dict[str, list[float]]]:
    """Caches, and by pattern their misses as shares of those of `base`, in that order.

    Rows come in the order in which runs were done, which differs from pattern to pattern.
    """
    caches = names(found)
    bars = {}
    for pattern in names(found, "pattern"):
        by_cache = {row["cache"]: row["miss_ratio"] for row in pick(found, pattern=pattern)}
        bars[pattern] = [by_cache[cache] / by_cache[base] for cache in caches]
    return caches, bars


def names(found: Rows, key: str = "cache") -> list[str]:
    return list(dict.fromkeys(row[key] for row in found))


@block("hash-sim-ways")
def ways() -> str:
    found = rows(FILE, experiment="ways")
    lines = [
        (f"`{cache}`", *(f"{100 * misses(found, cache=cache, capacity=size):.2f}" for size in SIZES))
        for cache in names(found)
    ]
    return table(("misses, %; entries:", *million()), lines) + "\n\n" + source(found, FILE)


@block("hash-sim-zipf-readings")
def readings() -> str:
    found = rows(FILE, experiment="scrambling")
    kinds = names(found, "keys")
    lines = [
        (f"`{cache}`", *(percent(misses(found, cache=cache, keys=kind), 2) for kind in kinds)) for cache in names(found)
    ]
    return table(("misses, 8 M entries", *(f"`{kind}`" for kind in kinds)), lines) + "\n\n" + source(found, FILE)


def share_of_chaining(found: Rows, cache: str, size: int) -> float:
    return (1 - misses(found, cache=cache, capacity=size)) / (1 - misses(found, cache="chained:lru", capacity=size))


def tables(stream: str) -> str:
    full = rows(FILE, experiment="tables", stream=stream)
    small = rows(FILE, experiment="tables-small", stream=stream)
    lines = [
        (f"`{cache}`", *(f"{100 - 100 * misses(full, cache=cache, capacity=size):.2f}" for size in SIZES))
        for cache in ("chained:lru", "set:16:lru", "hopscotch", "strided")
    ]
    for cache in ("set:16:lru", "cuckoo", "cuckoo:4"):
        shares = (100 * share_of_chaining(small, cache, size // SCALE) for size in SIZES)
        lines.append((f"`{cache}`, 1:{SCALE}, of chaining's", *(f"{share:.2f}" for share in shares)))
    return table((f"hits, %; {stream}; entries:", *million()), lines) + "\n\n" + source(full + small, FILE)


for _stream in STREAMS:
    block(f"hash-sim-tables-{_stream}")(lambda stream=_stream: tables(stream))


def pattern_table(found: Rows, label: str) -> str:
    patterns = names(found, "pattern")
    lines = [
        (f"`{cache}`", *(f"{100 * misses(found, cache=cache, pattern=pattern):.2f}" for pattern in patterns))
        for cache in names(found)
    ]
    return table((f"misses, %; {label}", *patterns), lines) + "\n\n" + source(found, FILE)


@block("hash-sim-evictions")
def evictions() -> str:
    return pattern_table(rows(FILE, experiment="evictions", capacity=20_000), "20,000 entries")


@block("hash-sim-sized")
def sized() -> str:
    return pattern_table(rows(FILE, experiment="sized", memory=64 << 20), "64 MiB")


@block("hash-sim-expiry")
def expiry() -> str:
    found = rows(FILE, experiment="expiry")
    times = sorted({row["ttl_s"] for row in found})
    lines = [
        (f"`{cache}`", *(f"{100 * misses(found, cache=cache, ttl_s=ttl):.2f}" for ttl in times))
        for cache in names(found)
    ]
    return table(("misses, %; time to live, s:", *times), lines) + "\n\n" + source(found, FILE)


@block("hash-sim-thresholds")
def thresholds() -> str:
    found = rows(FILE, experiment="thresholds")
    lines = []
    for cache in names(found):
        cells = [f"`{cache}`"]
        for pattern in ("zipf", "drift"):
            row = only(found, cache=cache, pattern=pattern)
            cells += [f"{100 * row['miss_ratio']:.2f}", f"{row['moved'] / 1e6:.0f}" if "moved" in row else ""]
        lines.append(cells)
    head = ("`--cache`", "misses, %, zipf", "copied MB", "misses, %, drift", "copied MB")
    return table(head, lines) + "\n\n" + source(found, FILE)


def filled_ways(keys: int, entries: int, ways: int = 16) -> float:
    """The share of the entries that keys fill: E[min(X, ways)] / ways, X Poisson distributed."""
    mean = ways * keys / entries
    probability, below, filled = math.exp(-mean), 0.0, 0.0
    for count in range(ways):
        below += probability
        filled += count * probability
        probability *= mean / (count + 1)
    return (filled + ways * (1 - below)) / ways


@block("hash-sim-poisson")
def poisson() -> str:
    found = rows(FILE, experiment="poisson")
    lines = []
    for entries in sorted({row["capacity"] for row in found}):
        share = share_of_chaining(found, "set:16:lru", entries)
        lines.append((f"{entries:,}", percent(share, 2), percent(filled_ways(10 * MILLION, entries), 2)))
    head = ("entries for 10 M uniform keys", "hits of 16 ways, of chaining's", "E[min(X, 16)] / 16")
    return table(head, lines) + "\n\n" + source(found, FILE)


def below_working_set(stream: str, cache: str, experiment: str = "tables", scale: int = 1) -> list[float]:
    found = rows(FILE, experiment=experiment, stream=stream)
    return [share_of_chaining(found, cache, size // scale) for size in SIZES if size < 10 * MILLION]


@block("hash-sim-papers")
def against_papers() -> str:
    eight = {n: rows(FILE, experiment="ways", cache=f"set:{n}:lru", capacity=8 * MILLION) for n in (1, 16)}
    zipf = rows(FILE, experiment="tables", stream="zipf")
    least = min((share_of_chaining(zipf, "set:16:lru", size), size) for size in SIZES)
    uniform = share_of_chaining(rows(FILE, experiment="tables", stream="uniform"), "set:16:lru", 10 * MILLION)
    means = [
        statistics.mean(share for stream in PAPER_STREAMS for share in below_working_set(stream, cache))
        for cache in ("hopscotch", "strided", "set:16:lru")
    ]
    cuckoo = statistics.mean(
        share for stream in PAPER_STREAMS for share in below_working_set(stream, "cuckoo", "tables-small", SCALE)
    )
    lines = [
        ("misses, 8 M entries, 1 way", percent(PAPER_WAYS[1]), percent(eight[1][-1]["miss_ratio"], 2)),
        ("misses, 8 M entries, 16 ways", percent(PAPER_WAYS[16]), percent(eight[16][-1]["miss_ratio"], 2)),
        ("least share of chaining's hits, 16 ways, Zipf", "95.4%", f"{percent(least[0], 2)}, {least[1] // MILLION} M"),
        ("the same, uniform keys, 10 M entries", "96.6% and more", percent(uniform)),
        ("mean below the working set: hopscotch, strided, sets", "over 99% each", ", ".join(map(percent, means))),
        (f"the same, cuckoo (1:{SCALE})", "over 97%", percent(cuckoo)),
    ]
    return table(("", "the papers", "hash-sim"), lines)


SHARES = (0.01, 0.03, 0.1, 0.3)
RULES = {
    "two-generations": "the model, as the store",
    "two-generations:10": "young 10% (20%)",
    "two-generations:50": "young 50%",
    "two-generations:20:25:3:2": "two accesses to stay (one)",
    "two-generations:20:25:3:1:90": "ghosts for 90% of the capacity",
    "two-generations:20:25:3:1:0:4": "an access more for a size of 16 times the mean",
    "two-generations:20:25:3:1:0:2": "an access more for 4 times",
    "two-generations:20:25:3:1:90:4": "ghosts, and 16 times",
    "store": "the store",
    "store:64": "the store, segments of 64 KiB",
    "store:128": "the store, segments of 128 KiB",
    "store:256": "the store, segments of 256 KiB",
    "store:512": "the store, segments of 512 KiB",
    "store:1024": "the store, segments of 1 MiB",
    "chained:lru": "LRU",
    "chained:s3fifo": "S3-FIFO",
    "chained:s3fifo-empty-main": "S3-FIFO, main empty until an item earns it",
    "chained:s3fifo-few-ghosts": "the same, as many ghosts as main holds",
    "chained:gdsf": "GDSF",
}


def sized_streams() -> list[str]:
    return names(rows(FILE, experiment="streams"), "stream")


def stream_hits(found: Rows, cache: str, share: float, field: str = "miss_ratio") -> list[str]:
    """Hits in percent, by stream; and their mean where every stream has them."""
    cells, hits = [], []
    for stream in sized_streams():
        rows_there = pick(found, cache=cache, share=share, stream=stream)
        cells.append(f"{100 - 100 * rows_there[-1][field]:.2f}" if rows_there else "")
        hits += [100 - 100 * row[field] for row in rows_there[-1:]]
    return [*cells, f"{statistics.mean(hits):.2f}" if len(hits) == len(cells) else ""]


def stream_table(share: float, field: str = "miss_ratio") -> str:
    found = rows(FILE, experiment="streams", share=share)
    lines = [(f"`{cache}`", *stream_hits(found, cache, share, field)) for cache in names(found)]
    what = "hits" if field == "miss_ratio" else "bytes hit"
    head = (f"{what}, %; {100 * share:.0f}% of the footprint", *sized_streams(), "mean")
    return table(head, lines) + "\n\n" + source(found, FILE)


for _share in SHARES:
    block(f"hash-sim-streams-{100 * _share:.0f}")(lambda share=_share: stream_table(share))
block("hash-sim-streams-bytes")(lambda: stream_table(0.1, "byte_miss_ratio"))


# Of the lab note, whose tables stay as they were.
NOTE = {"commit": "275f024"}


def ablation_table(share: float) -> str:
    found = rows(FILE, experiment="ablation", share=share, **NOTE) + rows(
        FILE, experiment="streams", share=share, **NOTE
    )
    lines = [(text, *stream_hits(found, cache, share)) for cache, text in RULES.items()]
    head = (f"hits, %; {100 * share:.0f}% of the footprint", *sized_streams(), "mean")
    return table(head, lines) + "\n\n" + source(found, FILE)


for _share in (0.03, 0.1):
    block(f"hash-sim-ablation-{100 * _share:.0f}")(lambda share=_share: ablation_table(share))

VARIANT_STREAMS = ("block", "etc", "drift")


def variant_cells(found: Rows, variant: str, share: float) -> list[str]:
    mine = [only(found, variant=variant, share=share, stream=stream) for stream in VARIANT_STREAMS]
    byte_hits = [100 - 100 * row["byte_miss_ratio"] for row in mine]
    return [*(f"{100 - 100 * row['miss_ratio']:.2f}" for row in mine), f"{statistics.mean(byte_hits):.2f}"]


def variants_table(experiment: str, shares: tuple[float, float]) -> str:
    found = rows(FILE, experiment=experiment)
    lines = [
        (variant, *(cell for share in shares for cell in variant_cells(found, variant, share)))
        for variant in names(found, "variant")
    ]
    columns = (*VARIANT_STREAMS, "bytes, mean")
    head = ("hits, %", *(f"{100 * share:.0f}%: {one}" for share in shares for one in columns))
    return table(head, lines) + "\n\n" + source(found, FILE)


block("eviction-variants")(lambda: variants_table("store-variants", (0.03, 0.1)))
block("eviction-variants-by-size")(lambda: variants_table("store-variants-by-size", (0.01, 0.1)))

# Commits at which the store of decisions/0018 was measured.
WITH_SIZES = ("0c75b33", "777ec77")
# The commits at which those of decisions/0020, 0022, 0023 and 0024 were.
WITH_YOUNG_SHARE = ("86f91e7",)
WITH_FORGETTING = ("868be46",)
WITH_HALVES = ("80a1ac3",)
WITH_PARTS = ("32acd41",)


def before_after(before: Rows, now: Rows) -> str:
    found = before + now
    lines = []
    for share in SHARES:
        for name, those, cache in (
            ("before", before, "store"),
            ("now", now, "store"),
            ("S3-FIFO", found, "chained:s3fifo"),
        ):
            hits = stream_hits(those, cache, share)
            lines.append((f"{100 * share:.0f}%, {name}", *hits, stream_hits(those, cache, share, "byte_miss_ratio")[-1]))
    head = ("hits, %", *sized_streams(), "mean", "mean of bytes")
    return table(head, lines) + "\n\n" + source(found, FILE)


def store_and_s3fifo() -> Rows:
    return rows(FILE, experiment="streams", cache="store") + rows(FILE, experiment="streams", cache="chained:s3fifo")


@block("eviction-before-after")
def with_sizes() -> str:
    found = store_and_s3fifo()
    return before_after(pick(found, **NOTE), [row for row in found if row["commit"] in WITH_SIZES])


def between(commits: tuple[str, ...], later: tuple[str, ...]) -> str:
    """The store at two of its states, beside S3-FIFO."""
    found = store_and_s3fifo()
    s3fifo = pick(found, cache="chained:s3fifo", **NOTE)
    before, now = ([row for row in found if row["commit"] in those] for those in (commits, later))
    return before_after(before + s3fifo, now)


block("young-share-before-after")(lambda: between(WITH_SIZES, WITH_YOUNG_SHARE))
block("main-forgets-before-after")(lambda: between(WITH_YOUNG_SHARE, WITH_FORGETTING))
block("half-stays-before-after")(lambda: between(WITH_FORGETTING, WITH_HALVES))
block("small-while-main-fills")(lambda: between(WITH_HALVES, WITH_PARTS))


TRIED_STREAMS = ("block", "scans", "etc", "drift", "ttl")


@block("eviction-variants-young")
def young_variants() -> str:
    """Differences to the store of decisions/0022; some were run on some streams only."""
    found = rows(FILE, experiment="store-variants-small")
    before = [row for row in rows(FILE, experiment="streams", cache="store") if row["commit"] in WITH_FORGETTING]
    lines = []
    for variant in names(found, "variant"):
        for share in SHARES:
            mine = pick(found, variant=variant, share=share)
            if not mine:
                continue
            cells = []
            for field in ("miss_ratio", "byte_miss_ratio"):
                for stream in TRIED_STREAMS:
                    was = only(before, stream=stream, share=share)[field]
                    cells += [f"{100 * (was - row[field]):+.2f}" for row in pick(mine, stream=stream)] or [""]
            lines.append((variant, f"{100 * share:.0f}%", *cells))
    head = ("", "at", *TRIED_STREAMS, *(f"bytes: {stream}" for stream in TRIED_STREAMS))
    return table(head, lines) + "\n\n" + source(found, FILE)


@block("eviction-probes")
def probes() -> str:
    """Differences to the store of decisions/0023, and its bytes to S3-FIFO's; each variant was run on some streams."""
    found = rows(FILE, experiment="store-probes")
    stores = [row for row in rows(FILE, experiment="streams", cache="store") if row["commit"] in WITH_HALVES]
    s3fifo = rows(FILE, experiment="streams", cache="chained:s3fifo")
    lines = []
    for variant in names(found, "variant"):
        for row in pick(found, variant=variant):
            where = {"stream": row["stream"], "share": row["share"]}
            was, other = only(stores, **where), only(s3fifo, **where)
            objects = 100 * (was["miss_ratio"] - row["miss_ratio"])
            gained = 100 * (was["byte_miss_ratio"] - row["byte_miss_ratio"])
            beside = 100 * (other["byte_miss_ratio"] - row["byte_miss_ratio"])
            at = f"{100 * row['share']:.0f}%"
            lines.append((variant, at, row["stream"], *(f"{one:+.2f}" for one in (objects, gained, beside))))
    head = ("", "at", "stream", "objects", "bytes", "bytes, less S3-FIFO's")
    return table(head, lines) + "\n\n" + source(found, FILE)


BETWEEN = {
    "chained:s3fifo": "S3-FIFO",
    "chained:lirs": "LIRS",
    "chained:gdsf-25": "GDSF, cost to the power of 0.25",
    "chained:gdsf-50": "GDSF, 0.5",
    "chained:gdsf-75": "GDSF, 0.75",
    "chained:gdsf": "GDSF",
}


@block("objects-and-bytes")
def objects_and_bytes() -> str:
    """Mean hits of objects over the streams, and the bytes of the stream that loses most to S3-FIFO."""
    streams = rows(FILE, experiment="streams")
    stores = [row for row in streams if row["cache"] == "store" and row["commit"] in WITH_HALVES]
    s3fifo = pick(streams, cache="chained:s3fifo", **NOTE)
    others = rows(FILE, experiment="gdsf-powers") + pick(streams, **NOTE)
    by_part = rows(FILE, experiment="store-by-part")
    kept = {"the store": stores, "the store, its young limit by young's part": by_part}
    kept |= {text: pick(others, cache=cache) for cache, text in BETWEEN.items()}
    lines = []
    for text, mine in kept.items():
        cells, objects = [], []
        for share in SHARES:
            there = pick(mine, share=share)
            objects.append(statistics.mean(100 - 100 * row["miss_ratio"] for row in there))
            lost = [
                100 * (only(s3fifo, stream=row["stream"], share=share)["byte_miss_ratio"] - row["byte_miss_ratio"])
                for row in there
            ]
            cells += [f"{objects[-1]:.2f}", f"{min(lost):+.2f}"]
        lines.append((text, *cells, f"{statistics.mean(objects):.2f}"))
    head = [f"{100 * share:.0f}%{what}" for share in SHARES for what in ("", ": bytes")]
    return table(("objects hit, %", *head, "mean"), lines) + "\n\n" + source(sum(kept.values(), []), FILE)


@block("objects-and-bytes-megabytes")
def objects_and_bytes_by_megabytes() -> str:
    """By streams and sizes of bench/hitratio: differences to S3-FIFO, in points."""
    found = rows(FILE, experiment="store-by-part-megabytes")
    mine = ("the store", "its young limit by young's part", "gdsf")
    lines = []
    for other in pick(found, variant="s3fifo"):
        where = {"stream": other["stream"], "megabytes": other["megabytes"]}
        cells = []
        for field in ("miss_ratio", "byte_miss_ratio"):
            those = (only(found, variant=variant, **where) for variant in mine)
            cells += [f"{100 * (other[field] - row[field]):+.2f}" for row in those]
        lines.append((f"{where['stream']}, {where['megabytes']} MB", *cells))
    objects = ("objects: the store", "by part", "GDSF")
    head = ("less S3-FIFO's, points", *objects, "bytes: the store", "by part", "GDSF")
    return table(head, lines) + "\n\n" + source(found, FILE)


@block("store-behind-gdsf")
def behind_gdsf() -> str:
    """The store of decisions/0022, less GDSF and S3-FIFO, in points, by stream."""
    found = [row for row in rows(FILE, experiment="streams") if row["commit"] not in (*WITH_HALVES, *WITH_PARTS)]
    lines = []
    for share in (0.1, 0.3):
        for what, other, field in (
            ("objects, less GDSF's", "chained:gdsf", "miss_ratio"),
            ("bytes, less GDSF's", "chained:gdsf", "byte_miss_ratio"),
            ("bytes, less S3-FIFO's", "chained:s3fifo", "byte_miss_ratio"),
        ):
            mine, its = (stream_hits(found, cache, share, field) for cache in ("store", other))
            cells = (f"{float(one) - float(two):+.2f}" for one, two in zip(mine, its, strict=True))
            lines.append((f"{100 * share:.0f}%: {what}", *cells))
    return table(("points", *sized_streams(), "mean"), lines) + "\n\n" + source(found, FILE)


JUDGED_MIN = 100  # items, for a part of them to be shown
USED_AGAIN = {"y1": "used again after one access", "y3": "used again after three or more"}


@block("store-reuse")
def reuse() -> str:
    """What comes back after its eviction, and what is used again in its first round in main."""
    found = rows(FILE, experiment="store-reuse")
    lines = []
    for share in sorted({row["share"] for row in found}):
        mine = [only(found, stream=stream, share=share) for stream in sized_streams()]
        for generation, name in enumerate(("young", "main")):
            parts = [(row["returned_from"][generation], row["evicted_from"][generation]) for row in mine]
            cells = (f"{100 * part / of:.1f}" if of >= JUDGED_MIN else "" for part, of in parts)
            lines.append((f"{100 * share:.0f}%: evicted from {name}, come back", *cells))
        for kind, text in USED_AGAIN.items():
            cells = (f"{100 * row['used_again'][kind]:.1f}" if row["judged_again"][kind] >= JUDGED_MIN else "" for row in mine)
            lines.append((f"{100 * share:.0f}%: {text}", *cells))
    return table(("parts, %", *sized_streams()), lines) + "\n\n" + source(found, FILE)


@block("store-beside-gdsf")
def beside_gdsf() -> str:
    """Objects and bytes of the store of decisions/0022 beside those of GDSF and S3-FIFO, means over the streams."""
    found = [row for row in rows(FILE, experiment="streams") if row["commit"] not in (*WITH_HALVES, *WITH_PARTS)]
    lines = []
    for share in SHARES:
        cells = [
            stream_hits(found, cache, share, field)[-1]
            for field in ("miss_ratio", "byte_miss_ratio")
            for cache in ("store", "chained:gdsf", "chained:s3fifo")
        ]
        lines.append((f"{100 * share:.0f}%", *cells))
    head = ("hits, %, mean of the streams", "store", "GDSF", "S3-FIFO", "bytes: store", "GDSF", "S3-FIFO")
    return table(head, lines) + "\n\n" + source(found, FILE)


POLICIES = {"sieve": "SIEVE", "s3fifo": "S3-FIFO", "w-tinylfu": "W-TinyLFU", "lirs": "LIRS", "gdsf": "GDSF", "lhd": "LHD"}


def look_aside_cells(found: Rows, field: str) -> list[str]:
    rates = {row["cache"]: row[field] for row in found}
    best = max(POLICIES, key=lambda name: rates.get(name, 0))
    shown = [rates[name] for name in ("memcached", "warpcached", "lru", "s3fifo")]
    return [*(f"{rate:.3f}" for rate in shown), f"{rates[best]:.3f} {POLICIES[best]}", f"{rates['farthest']:.3f}"]


@block("hit-ratio-sizes")
def look_aside() -> str:
    found = rows("hit_ratio")
    lines = []
    for stream in names(found, "stream"):
        for megabytes in sorted({row["megabytes"] for row in pick(found, stream=stream)}):
            mine = pick(found, stream=stream, megabytes=megabytes)
            byte_rates = look_aside_cells(mine, "byte_hit_ratio")
            lines.append((stream, megabytes, *look_aside_cells(mine, "hit_ratio"), byte_rates[0], byte_rates[1], byte_rates[3]))
    head = ("stream", "`-m`", "memcached", "warpcached", "LRU", "S3-FIFO", "best", "farthest")
    head += ("bytes: memcached", "warpcached", "S3-FIFO")
    return table(head, lines) + "\n\n" + source(found, "hit_ratio")


plot("hash-sim-streams", lambda: rows(FILE, experiment="streams"), "hit_rates", "streams")
for _stream in STREAMS:
    plot(
        f"hash-sim-tables-{_stream}",
        lambda stream=_stream: (
            rows(FILE, experiment="tables", stream=stream) + rows(FILE, experiment="tables-small", stream=stream)
        ),
        "hit_rates",
        "tables",
    )
plot("hash-sim-ways", lambda: rows(FILE, experiment="ways"), "hit_rates", "ways")
plot("hash-sim-evictions", lambda: rows(FILE, experiment="evictions", capacity=20_000), "hit_rates", "evictions")
plot("hash-sim-sized", lambda: rows(FILE, experiment="sized", memory=64 << 20), "hit_rates", "sized")
