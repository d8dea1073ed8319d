# SPDX-License-Identifier: Apache-2.0
"""tools/lint checks again what has changed; tools/summary.py counts by folder and notices what is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest
from source_tree import REPO_ROOT


@pytest.fixture
def lint(tmp_path, monkeypatch):
    """tools/lint over one source, with programs that count how often they run: what they find is in `found`."""
    loader = SourceFileLoader("lint", str(REPO_ROOT / "tools/lint"))
    module = module_from_spec(spec_from_loader("lint", loader))
    loader.exec_module(module)
    for name, text in {"a.h": "int a();\n", "a.cc": '#include "a.h"\nint a() { return 1; }\n', ".clang-tidy": "x"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "tidy").write_text(f"#!/bin/sh\necho ran >>{tmp_path}/runs\ncat {tmp_path}/found 2>/dev/null && exit 1\nexit 0\n")
    (tmp_path / "tidy").chmod(0o755)
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "DATABASE", tmp_path)
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(module, "CLANG_TIDY", str(tmp_path / "tidy"))
    monkeypatch.setattr(module, "CLANG", "c++")
    return module


def checked(lint, *options: str, again: bool = False) -> tuple[str, bool]:
    path = lint.ROOT / "a.cc"
    words = ["/usr/bin/c++", *options, "-o", "a.o", "-c", str(path)]
    _, text, ran = lint.check(path, words, again)
    return text, ran


def test_lint_checks_again_what_has_changed(lint):
    assert checked(lint) == ("", True)
    assert checked(lint) == ("", False)
    assert checked(lint, "-DB=1") == ("", True)
    assert checked(lint, again=True) == ("", True)
    (lint.ROOT / "a.h").write_text("int a();  // NOLINT\n")
    assert checked(lint) == ("", True)
    (lint.ROOT / ".clang-tidy").write_text("y")
    assert checked(lint) == ("", True)
    assert checked(lint) == ("", False)


def test_lint_needs_no_compiler_for_what_is_as_it_was(lint, monkeypatch):
    assert checked(lint) == ("", True)
    monkeypatch.setattr(lint, "CLANG", "false")
    assert checked(lint) == ("", False)
    (lint.ROOT / "a.h").write_text("int a();  // NOLINT\n")
    assert checked(lint) == ("", True)


def test_lint_of_another_checkout_is_known(lint, monkeypatch):
    (lint.ROOT / "a.h").write_text("int a();\ninline const char* name() { return __FILE__; }\n")
    assert checked(lint) == ("", True)
    other = lint.ROOT / "other"
    other.mkdir()
    for name in ("a.h", "a.cc", ".clang-tidy"):
        (other / name).write_text((lint.ROOT / name).read_text())
    for name in ("ROOT", "DATABASE"):
        monkeypatch.setattr(lint, name, other)
    assert checked(lint) == ("", False)
    for parts in lint.CACHE.glob("*.parts"):
        parts.unlink()
    assert checked(lint) == ("", False)  # by its text
    (other / "a.cc").write_text('#include "a.h"\nint a() { return 2; }\n')
    assert checked(lint) == ("", True)


def test_lint_does_not_forget_what_is_wrong(lint):
    (lint.ROOT / "found").write_text("a.cc: wrong")
    assert checked(lint) == ("a.cc: wrong", True)
    assert checked(lint) == ("a.cc: wrong", True)
    (lint.ROOT / "found").unlink()
    (lint.ROOT / "a.h").write_text("#error no\n")  # it cannot be preprocessed, so nothing is kept
    assert checked(lint) == ("", True)
    assert checked(lint) == ("", True)


def summary(folder, report: str | None, status: int = 0) -> subprocess.CompletedProcess:
    if report is not None:
        (folder / "system.xml").write_text(report)
    record = f"system\t{status}\t0.0\t1.0\t{folder}/system.xml\t2500\n"
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
    assert ["system", "1", "1", "1", "1.0", "s", "2.5", "s"] in rows
    assert "failed: system: tests.load.test_load.test_b" in done.stdout
    assert done.stdout.endswith("1 passed, 1 failed, 1 skipped\n") and done.returncode == 1


@pytest.mark.parametrize(
    ("report", "status"),
    [(None, 0), ("<broken", 0), (suite(SKIPPED), 0), (suite(PASSED), 2)],
    ids=["no report", "a broken report", "nothing ran", "the status says otherwise"],
)
def test_summary_notices_what_is_missing(tmp_path, report, status):
    assert summary(tmp_path, report, status).returncode == 1


def test_parts_record_their_processor_time(tmp_path):
    """Of each alone, whichever lane it runs in."""
    spin = 'spin() { python3 -c "import time\nwhile time.process_time() < 0.3: pass"; }'
    script = f"""set -euo pipefail
source {REPO_ROOT}/tools/parts.sh
{spin}
lane() {{ part beside - spin; }}
parts_begin {tmp_path}
part spun - spin
parts_beside lane lane
part rests - sleep 3
wait
"""
    subprocess.run(["bash", "-c", script], check=True, capture_output=True)
    rows = [path.read_text().split("\t") for path in sorted(tmp_path.glob("*.part"))]
    times_ms = {row[0]: int(row[5]) for row in rows}
    assert times_ms["spun"] >= 300 and times_ms["beside"] >= 300 and times_ms["rests"] < 300
    assert int(rows[1][1]) == 0 and len(rows) == 3
