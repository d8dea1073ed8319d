# SPDX-License-Identifier: Apache-2.0
"""Full-size results against what the papers state in numbers. Each check says what it compares."""

from __future__ import annotations

import json
from pathlib import Path

from experiments import KEYS, MILLION
from rendering.hit_rates import PAPER_STREAMS, PAPER_WAYS, hit_rates
from rendering.rows import pick

MISS_TOLERANCE = 0.002
SHARE_TOLERANCE = 0.005
LEAST_SHARE = 0.954  # SoCC 2015, 5.2: of chaining's hits with 16 ways, Zipf
AVERAGE_SHARES = {"set:16:lru": 0.99, "hopscotch": 0.99, "strided": 0.99}  # below the working set
CUCKOO_SHARE = 0.97  # likewise, on average


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)


def shares(found: dict[str, dict[int, float]], cache: str, below: int) -> list[float]:
    chained = found["chained:lru"]
    return [found[cache][n] / chained[n] for n in chained if n < below and n in found[cache]]


def check_ways(rows: list[dict]) -> list[tuple[str, float, float, bool]]:
    found = hit_rates(pick(rows, experiment="ways"))
    out = []
    for ways, paper in PAPER_WAYS.items():
        miss = 1 - found[f"set:{ways}:lru"][8 * MILLION]
        out.append((f"misses, {ways} ways", miss, paper, abs(miss - paper) <= MISS_TOLERANCE))
    least = min(shares(found, "set:16:lru", 1 << 60))
    well = abs(least - LEAST_SHARE) <= SHARE_TOLERANCE
    out.append(("least share of chaining's hits, 16 ways", least, LEAST_SHARE, well))
    most = max(1 - rate for n, rate in found["chained:lru"].items() if n >= KEYS)
    out.append(("chaining's misses where all keys fit", most, 0.0, most == 0.0))
    return out


def check_tables(rows: list[dict]) -> list[tuple[str, float, float, bool]]:
    """Means over the three streams and all sizes below the working set; at least the paper's."""
    full = [hit_rates(pick(rows, experiment="tables", stream=s)) for s in PAPER_STREAMS]
    small = [hit_rates(pick(rows, experiment="tables-small", stream=s)) for s in PAPER_STREAMS]
    out = []
    for cache, paper in AVERAGE_SHARES.items():
        share = mean(share for found in full for share in shares(found, cache, KEYS))
        out.append((f"mean share of chaining's hits, {cache}", share, paper, share >= paper))
    below = max(small[0]["chained:lru"]) * KEYS // max(full[0]["chained:lru"])
    share = mean(share for found in small for share in shares(found, "cuckoo", below))
    well = share >= CUCKOO_SHARE - SHARE_TOLERANCE
    out.append(("mean share of chaining's hits, cuckoo", share, CUCKOO_SHARE, well))
    return out


CHECKS = {"ways": check_ways, "tables": check_tables}


def check_all(path: Path, names: list[str]) -> bool:
    """Whether the rows of these experiments agree with what the papers state of them."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    results, missing = [], []
    for name in CHECKS:
        if name not in names:
            continue
        try:
            results += CHECKS[name](rows)
        except LookupError:
            missing.append(name)
    for name in missing:
        print(f"FAILED {name}: {path} lacks rows of it")
    for name, ours, paper, well in results:
        print(f"{'ok    ' if well else 'FAILED'} {name}: {ours:.4f} (paper {paper:.4f})")
    wrong = sum(row["wrong"] for row in rows)
    print(f"{'ok    ' if wrong == 0 else 'FAILED'} hits with a wrong value: {wrong}")
    return wrong == 0 and not missing and all(well for *_, well in results)
