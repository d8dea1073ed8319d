# SPDX-License-Identifier: Apache-2.0
"""Blocks of rtl/ on their own: their test benches (rtl/*/tb), and that each of these notices a fault in what it sees."""

import functools
import os
import pathlib
import re
import subprocess

import pytest
import rtl_tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 600  # of a run that hangs
LONG = "WARPCACHE_LONG_TESTS" in os.environ
KINDS = ("flip", "drop", "repeat")
BENCHES = sorted(
    name for path in ROOT.glob("rtl/*/tb/*.cc") for name in re.findall(r'^const Registered \w+\("(\w+)"', path.read_text(), re.M)
)
# Test benches that look into a block in each cycle, not at streams.
WITHOUT_STREAMS = {"byte_window", "csr", "expiry_clock", "fill_table", "two_beats"}


def run(*arguments):
    return subprocess.run([rtl_tools.program("rtl_blocks"), *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", timeout=LIMIT_S, check=False)


@functools.cache
def beats(name):
    """How many beats each output of the block gives."""
    done = run(name)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return {stream: int(count) for stream, count in re.findall(r"(\w+) (\d+)(?= |$)", done.stdout.strip().split(";")[1])}


def test_all_are_known():
    assert run().stdout.split() == BENCHES


def test_each_block_has_a_bench_and_a_document():
    for folder in ROOT.glob("rtl/*/rtl"):
        if folder.parent.name != "top":
            assert list(folder.parent.glob("tb/*.cc")) and (folder.parent / "doc/README.md").is_file(), folder.parent.name


@pytest.mark.parametrize("name", BENCHES)
def test_block(name):
    counts = beats(name)
    assert bool(counts) != (name in WITHOUT_STREAMS) and all(counts.values()), counts
    for seed in (2, 3):
        done = run(name, "--seed", seed)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", [name for name in BENCHES if name not in WITHOUT_STREAMS])
def test_a_fault_is_noticed(name):
    """A bit that differs, a beat that is lost or comes twice, in each output."""
    # In its second part fill_reader may leave replies out.
    part = 4 if name == "fill_reader" else 2
    for number, (stream, count) in enumerate(beats(name).items()):
        # By day one kind for each output, another for the next.
        for kind in KINDS if LONG else [KINDS[number % len(KINDS)]]:
            done = run(name, "--fault", f"{stream}:{kind}:{count // part}")
            assert done.returncode == 1 and "cycle" in done.stdout, (stream, kind, done.stdout)
