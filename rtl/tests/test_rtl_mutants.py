# SPDX-License-Identifier: Apache-2.0
"""The faults of rtl/mutants and rtl/formal/mutants still fit the sources, and each bench and each proof has some.

Whether they are noticed takes hours: the scripts say it.
"""

import importlib.machinery
import importlib.util
import pathlib
import re

import pytest

RTL = pathlib.Path(__file__).resolve().parents[1]


def faults(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("/", "_"), str(RTL / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module.MUTANTS


def misfits(found, folder=RTL):
    return [(name, old) for _, name, old, new in found if old == new or (folder / name).read_text().count(old) != 1]


@pytest.mark.parametrize("name", ["mutants", "formal/mutants"])
def test_every_fault_applies_once(name):
    assert misfits(faults(name)) == []


def test_each_bench_has_a_fault():
    benches = {found for path in RTL.glob("*/tb/*.cc") for found in re.findall(r'^const Registered \w+\("(\w+)"', path.read_text(), re.M)}
    assert benches and {bench for bench, *_ in faults("mutants")} == benches


def test_each_proof_has_a_fault():
    tasks = (RTL / "formal/core.sby").read_text().partition("[tasks]\n")[2].partition("\n\n")[0].split()
    assert tasks and {task for task, *_ in faults("formal/mutants")} == set(tasks)


def test_the_check_itself(tmp_path):
    (tmp_path / "x.sv").write_text("a; b; b;")
    found = [("x", "x.sv", old, new) for old, new in (("a;", ""), ("a;", "a;"), ("b;", ""), ("c;", ""))]
    assert misfits(found, tmp_path) == [("x.sv", "a;"), ("x.sv", "b;"), ("x.sv", "c;")]
