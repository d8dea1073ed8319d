# SPDX-License-Identifier: Apache-2.0
"""tools/lint finds what a change concerns; tools/summary.py counts by folder and notices what is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest
from source_tree import REPO_ROOT

TREE = {
    "src/a/a.h": "",
    "src/a/b.h": '#include "a/a.h"\n',
    "src/a/b.cc": '#include "a/b.h"\n',
    "src/a/b_test.cc": '#include "a/b.h"\n',
    "src/a/c.cc": "#include <vector>\n",
    "sim/d.cc": '#include "d.h"\n',
    "sim/d.h": '#include "a/b.h"\n',
}


@pytest.fixture
def lint(tmp_path):
    loader = SourceFileLoader("lint", str(REPO_ROOT / "tools/lint"))
    module = module_from_spec(spec_from_loader("lint", loader))
    loader.exec_module(module)
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    module.ROOT = tmp_path
    return module


@pytest.mark.parametrize(
    ("changed", "checked"),
    [
        ([], []),
        (["src/a/c.cc"], ["src/a/c.cc"]),
        (["src/a/a.h"], ["sim/d.cc", "src/a/b.cc"]),
        (["sim/d.h", "README.md"], ["sim/d.cc"]),
        (["src/a/b_test.cc"], []),
        (["src/a/removed.cc"], []),
        (["cmake/Options.cmake"], ["sim/d.cc", "src/a/b.cc", "src/a/c.cc"]),
    ],
)
def test_lint_checks_what_a_change_concerns(lint, changed, checked):
    assert lint.concerned(set(changed)) == checked


def test_lint_refuses_a_commit_that_is_not_there():
    done = subprocess.run([REPO_ROOT / "tools/lint", "--since", "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no commit nothing" in done.stderr


def summary(folder, report: str | None, status: int = 0) -> subprocess.CompletedProcess:
    if report is not None:
        (folder / "system.xml").write_text(report)
    record = f"system\t{status}\t0.0\t1.0\t{folder}/system.xml\n"
    (folder / "01.part").write_text(record)
    command = [sys.executable, REPO_ROOT / "tools/summary.py", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def suite(*cases: str) -> str:
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


PASSED = '<testcase classname="tests.faults.test_time" name="test_a"/>'
FAILED = '<testcase classname="tests.load.test_load" name="test_b"><failure/></testcase>'
SKIPPED = '<testcase classname="tests.load.test_load" name="test_c"><skipped/></testcase>'


def test_summary_counts_by_folder(tmp_path):
    done = summary(tmp_path, suite(PASSED, FAILED, SKIPPED), 1)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["faults", "1", "0", "0"] in rows and ["load", "0", "1", "1"] in rows
    assert "failed: system: tests.load.test_load.test_b" in done.stdout
    assert done.stdout.endswith("1 passed, 1 failed, 1 skipped\n") and done.returncode == 1


@pytest.mark.parametrize(
    ("report", "status"),
    [(None, 0), ("<broken", 0), (suite(SKIPPED), 0), (suite(PASSED), 2)],
    ids=["no report", "a broken report", "nothing ran", "the status says otherwise"],
)
def test_summary_notices_what_is_missing(tmp_path, report, status):
    assert summary(tmp_path, report, status).returncode == 1
