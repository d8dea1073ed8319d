# SPDX-License-Identifier: Apache-2.0
"""The NIC cache in simulation, before the CPU engine as its host."""

import pathlib
import re
import subprocess

import pytest
import rtl_tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = sorted((ROOT / "tests/packets/cases").glob("*.json"))
# By day each half of the cases is played in one of the two ways only.
HELD_CASES = [(0, CASES), (30, CASES)] if rtl_tools.LONG else [(0, CASES[::2]), (30, CASES[1::2])]
LIMIT_S = 600  # of a run that hangs


def run(*arguments):
    done = subprocess.run([rtl_tools.program("rtl_nic"), *map(str, arguments)], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def counts(out):
    """Of a run of operations or damaged frames."""
    return {name: int(re.search(rf"(\d+) {name}", out).group(1)) for name in ("answered", "forwarded", "filled", "fills dead", "flushes")}


@pytest.mark.parametrize("hold, cases", HELD_CASES, ids=["held 0%", "held 30%"])
def test_the_client_sees_the_same_bytes(hold, cases):
    """Cases of tests/packets; whether the cache or the host answers, each twice over."""
    out = run("packets", "--hold", hold, "--delay", 300, *cases)
    passed, failed, left_out, answered = map(int, re.findall(r"\d+", out.splitlines()[-1]))
    assert failed == 0 and passed >= (200 if cases == CASES else 90) and left_out <= 12 and answered >= 20, out


@pytest.mark.parametrize("seed, hold, delay", [(1, 0, 2000), (2, 20, 300)])
def test_a_get_finds_what_the_last_write_before_it_left(seed, hold, delay):
    """Gets and writes race: TCP, several requests in a datagram, damaged frames, flushes among them."""
    out = run("operations", "--count", 5000, "--seed", seed, "--hold", hold, "--delay", delay)
    found = counts(out)
    assert found["answered"] > 300 and found["forwarded"] > 2000 and found["filled"] > 100, out
    assert found["fills dead"] > 10 and found["flushes"] > 10, out


@pytest.mark.parametrize("seed, hold", [(1, 0), (2, 20)])
def test_damaged_frames(seed, hold):
    """Each is passed on as it came, or answered, and no reply differs from the host's."""
    out = run("damaged", "--count", 2000, "--seed", seed, "--hold", hold, "--delay", 300, *CASES)
    found = counts(out)
    assert found["forwarded"] > 1500 and found["flushes"] > 100, out
