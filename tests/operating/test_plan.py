# SPDX-License-Identifier: Apache-2.0
"""--plan: what several sizes of memory would do with a trace, by hash-sim beside the server."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from faults.conftest import target  # noqa: F401

ROW = re.compile(r"^ *([\d.]+) +([\d,]+) +([\d.]+) +(\d+) \+ (\d+) +([\d.]+)% +([\d.]+)%$", re.MULTILINE)
LIMIT_S = 300


def plan(program, *options, **more):
    return subprocess.run([program, *options], capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)


@pytest.fixture
def program(target):  # noqa: F811
    if not Path(target.path).with_name("hash-sim").exists():
        pytest.skip("hash-sim is not built")
    return target.path


@pytest.fixture
def trace(tmp_path):
    """20,000 keys of 1,000 bytes, a tenth of them hot."""
    dice = random.Random(1)
    lines = ["time,key,size"]
    for time in range(60_000):
        key = dice.randrange(2_000) if dice.random() < 0.8 else dice.randrange(20_000)
        lines.append(f"{time},key{key:06},1000")
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_sizes_items_and_hit_ratios(program, trace):
    done = plan(program, f"--plan={trace}", "-m", "8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "60,000 requests, 60,000 of them gets" in done.stdout
    rows = [[float(word.replace(",", "")) for word in row] for row in ROW.findall(done.stdout)]
    assert [row[0] for row in rows] == [2, 4, 8, 16, 32][: len(rows)] and len(rows) >= 3, done.stdout
    for smaller, larger in zip(rows, rows[1:]):
        assert larger[1] > smaller[1] and larger[5] > smaller[5] and larger[6] > smaller[6]
    for megabytes, items, used, own, beside, hits, byte_hits in rows:
        assert used <= megabytes
        assert own == 1009 and 32 <= beside < 1000, done.stdout
        assert items * own < megabytes * 2**20
        assert hits == byte_hits  # all items have one size
    keys = int(re.search(r"([\d,]+) keys", done.stdout).group(1).replace(",", ""))
    assert rows[-1][1] == keys
    assert rows[-1][5] == pytest.approx(100 * (1 - keys / 60_000), abs=0.01)  # first requests miss
    assert "With the last size nothing is evicted" in done.stdout


def test_a_trace_that_cannot_be_read(program, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("1,a,10\nthis is no request at all, is it\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    for path, why in ((bad, "line 2 is no request"), (empty, "it holds no requests")):
        done = plan(program, "--plan", str(path))
        assert done.returncode != 0 and done.stdout == ""
        assert why in done.stderr and f"the trace {path} cannot be replayed" in done.stderr
    done = plan(program, "--plan", str(tmp_path / "none"))
    assert done.returncode != 0 and "cannot be read: No such file" in done.stderr


def test_without_the_simulator(target, tmp_path, trace):  # noqa: F811
    alone = tmp_path / "warpcached"
    shutil.copy(target.path, alone)
    done = plan(alone, f"--plan={trace}", env={"PATH": str(tmp_path)})
    assert done.returncode != 0 and done.stdout == ""
    assert "hash-sim is neither beside this program nor in PATH" in done.stderr
