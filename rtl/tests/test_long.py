# SPDX-License-Identifier: Apache-2.0
"""rtl/long: the row of several runs, a difference, a program that breaks, and the folder for another machine."""

import json
import os
import pathlib
import re
import subprocess

import pytest
import rtl_tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 600  # of a run that hangs

# Stands for rtl_differential: a slice of this many operations takes twice as many cycles.
AGREES = 'echo "$2 operations agree: $((2 * $2)) cycles, 3 hits, 4 misses, 5 stores, 6 cycles stalled by hazards"'


def long(*arguments, script=ROOT / "rtl/long", **environment):
    return subprocess.run([script, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env=os.environ | environment)


@pytest.fixture
def programs(tmp_path):
    """A folder with a program in the place of rtl_differential, whose body is given."""

    def make(body):
        program = tmp_path / "rtl_differential"
        # Its arguments: --hold 10 --latency 30 100 --operations N --seed N.
        program.write_text(f'#!/bin/sh\nshift 5\nseed=$4\n{body}\n')
        program.chmod(0o755)
        return tmp_path

    return make


def row_of(path):
    (line,) = path.read_text().splitlines()
    return json.loads(line)


def test_slices_are_added_up(programs, tmp_path):
    folder, output = programs(f'echo "$2 $seed" >> {tmp_path}/asked\n{AGREES}'), tmp_path / "rows"
    done = long("core", "--operations", 250, "--slice", 100, "--processes", 3, "--seed", 7, "--programs", folder, "--output", output)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted((tmp_path / "asked").read_text().splitlines()) == ["100 7", "100 8", "50 9"]
    row = row_of(output)
    assert (row["count"], row["cycles"], row["hits"], row["misses"], row["stores"]) == (250, 500, 9, 12, 15)
    assert row["stalled_cycles"] == 18 and row["differences"] == 0 and {"machine", "commit", "date"} <= row.keys()


def test_another_shape_is_a_program_of_its_own(programs, tmp_path):
    folder, output = programs(AGREES), tmp_path / "rows"
    (folder / "rtl_differential").rename(folder / "rtl_differential_small")
    done = long("core", "--shape", "small", "--operations", 100, "--programs", folder, "--output", output)
    assert done.returncode == 0, done.stdout + done.stderr
    row = row_of(output)
    assert row["what"].endswith("CPU engine, shape small") and row["command"].startswith("rtl_differential_small --hold"), row
    done = long("core", "--shape", "wide", "--programs", folder)
    assert done.returncode == 2 and "no program" in done.stderr and "rtl_differential_wide" in done.stderr, done.stderr


def test_a_difference_is_recorded(programs, tmp_path):
    folder, output = programs(f'[ $seed != 8 ] || {{ echo "a reply differs"; exit 1; }}\n{AGREES}'), tmp_path / "rows"
    done = long("core", "--operations", 900, "--slice", 100, "--processes", 1, "--seed", 7, "--programs", folder, "--output", output)
    assert done.returncode == 1 and "--seed 8" in done.stdout and "a reply differs" in done.stdout, done.stdout
    row = row_of(output)
    assert row["differences"] == 1 and row["count"] == 100  # none begins after it


@pytest.mark.parametrize("body", ["exit 3", "kill -9 $$", "echo nothing"])
def test_a_program_that_breaks_is_no_result(programs, tmp_path, body):
    folder, output = programs(body), tmp_path / "rows"
    done = long("core", "--operations", 100, "--programs", folder, "--output", output)
    assert done.returncode == 2 and "rtl_differential" in done.stderr and not output.exists(), done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [("core", "--operations", 0), ("core", "a-folder"), ("pack",), ("other",)])
def test_wrong_arguments(programs, arguments):
    done = long(*arguments, "--programs", programs(AGREES))
    assert done.returncode == 2 and "usage:" in done.stderr


def test_the_programs_run_from_a_folder_of_their_own(tmp_path):
    """With the C library of the machine alone."""
    build = rtl_tools.program("rtl_differential").parent
    rtl_tools.program("rtl_nic")
    done = long("pack", tmp_path / "all", "--programs", build)
    assert done.returncode == 0, done.stdout + done.stderr
    for run, least in ("core", 300), ("nic", 300):
        output = tmp_path / run
        done = long(run, "--operations", least, "--slice", 200, "--programs", tmp_path / "all/programs", "--output", output,
                    script=tmp_path / "all/rtl/long", WARPCACHE_COMMIT="abc1234")
        assert done.returncode == 0, done.stdout + done.stderr
        row = row_of(output)
        assert row["count"] >= least and row["cycles"] > 10 * least and row["differences"] == 0 and row["commit"] == "abc1234"
    for name in "rtl_differential", "rtl_nic":
        listed = subprocess.run(["ldd", tmp_path / "all/programs" / name], capture_output=True, text=True, check=True,
                                env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path / "all/programs/lib")}).stdout
        outside = [one for one, path in re.findall(r"(\S+) => (\S+)", listed) if not path.startswith(str(tmp_path))]
        assert all(re.match(r"lib(c|m)\.so", one) for one in outside), listed
