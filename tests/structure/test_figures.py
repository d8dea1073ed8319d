# SPDX-License-Identifier: Apache-2.0
"""What plots show of their rows, and the check of hash-sim's figures, both without running a simulator."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest
from harness.patience import PATIENCE_S
from source_tree import REPO_ROOT

FIGURES = REPO_ROOT / "sim" / "hitrate" / "figures"
RECORDED = REPO_ROOT / "bench" / "results" / "hash_sim.jsonl"


@pytest.fixture
def hit_rates(monkeypatch):
    monkeypatch.syspath_prepend(str(REPO_ROOT / "bench"))
    return importlib.import_module("rendering.hit_rates")


def test_bars_keep_their_names_whatever_was_done_first(hit_rates):
    misses = {"zipf": {"lru": 0.4, "fifo": 0.5, "store": 0.3}, "scans": {"lru": 0.2, "fifo": 0.1, "store": 0.4}}
    done = {"zipf": ("fifo", "lru", "store"), "scans": ("store", "fifo", "lru")}
    found = [
        {"pattern": pattern, "cache": cache, "miss_ratio": misses[pattern][cache]}
        for pattern, caches in done.items()
        for cache in caches
    ]
    caches, bars = hit_rates.miss_bars(found, "lru")
    for pattern, shares in bars.items():
        for cache, share in zip(caches, shares, strict=True):
            assert share == pytest.approx(misses[pattern][cache] / misses[pattern]["lru"])
    assert list(bars) == ["zipf", "scans"]


def test_filled_ways_is_the_expectation(hit_rates):
    assert hit_rates.filled_ways(10**7, 10**7) == pytest.approx(0.9008, abs=5e-5)
    assert hit_rates.filled_ways(10**7, 1 << 23) == pytest.approx(0.9640, abs=5e-4)
    assert hit_rates.filled_ways(1, 10**9) == pytest.approx(1e-9)


def check(output, *names: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(FIGURES), "--check-only", "--output", str(output), "--only", *names]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


def test_the_check_looks_at_what_was_chosen(tmp_path):
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    part = tmp_path / "rows.jsonl"
    part.write_text("".join(json.dumps(row) + "\n" for row in rows if row["experiment"] in ("ways", "expiry")))
    assert check(part, "expiry").returncode == 0
    assert check(part, "ways", "expiry").returncode == 0
    result = check(part, "ways", "tables")
    assert result.returncode == 1 and "lacks rows" in result.stdout, result
    for row in rows:
        row["miss_ratio"] *= 0.9
    part.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert check(part, "ways").returncode == 1
