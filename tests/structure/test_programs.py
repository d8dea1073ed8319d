# SPDX-License-Identifier: Apache-2.0
"""./test builds each program that a system test runs: one that only an earlier build has left there is missing in CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from harness.patience import PATIENCE_S
from source_tree import REPO_ROOT, all_files, read

# A test without the first is skipped, and says so; only benchmarks run the second.
MAY_BE_MISSING = {"hash-sim", "socket_floor"}
ASKED = re.compile(r"""find_(?:ucx_)?program\(\s*"([\w-]+)\"""")


def named_in_targets(text: str, target: str) -> set[str]:
    """What `add_dependencies` makes a part of `target`."""
    found = re.findall(rf"add_dependencies\(\s*{re.escape(target)}\s([^)]*)\)", text)
    return {name for names in found for name in names.split()}


def built_by_test() -> set[str]:
    lists = re.findall(r"programs\+?=\(([^)]*)\)", read(REPO_ROOT / "test"))
    targets = {name for names in lists for name in names.split()}
    cmake = "\n".join(read(path) for path in all_files() if path.name == "CMakeLists.txt")
    return targets.union(*(named_in_targets(cmake, target) for target in targets))


def asked_for() -> dict[str, str]:
    """Name of a program, and a file that asks for it."""
    found = {}
    for path in all_files(REPO_ROOT / "tests") + all_files(REPO_ROOT / "testing"):
        if path.suffix == ".py":
            found |= {name: path.relative_to(REPO_ROOT).as_posix() for name in ASKED.findall(read(path))}
    return found


def test_lists_are_read():
    """A check that reads nothing would pass."""
    assert {"warpcached", "ucx_bridge", "edge_host", "frames_relay"} <= built_by_test()
    assert {"ucx_bridge", "edge_host", "frames_relay", "run_model"} <= set(asked_for())
    assert "other" not in named_in_targets("add_dependencies(a_programs one\n  two)\nadd_dependencies(b other)", "a_programs")


@pytest.mark.parametrize("name", sorted(set(asked_for()) - MAY_BE_MISSING))
def test_is_built(name):
    assert name in built_by_test(), f"{asked_for()[name]} runs {name}, which no target of ./test builds"


def programs_with_our_modules() -> list[str]:
    """Programs in Python that find testing/harness by themselves: pytest's path is not theirs."""
    found = [path for path in all_files() if path.suffix == "" and os.access(path, os.X_OK)]
    texts = {path.relative_to(REPO_ROOT).as_posix(): read(path) for path in found}
    return [name for name, text in texts.items() if text.startswith("#!/usr/bin/env python3") and re.search(r"^from harness", text, re.MULTILINE)]


def test_programs_are_found():
    assert {"tests/soak/run", "bench/compare/run"} <= set(programs_with_our_modules())


@pytest.mark.parametrize("name", programs_with_our_modules())
def test_finds_its_modules(name):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, REPO_ROOT / name, "--help"], capture_output=True, text=True, timeout=PATIENCE_S, env=environment, check=False
    )
    assert done.returncode == 0 and "usage" in done.stdout.lower(), done.stderr
