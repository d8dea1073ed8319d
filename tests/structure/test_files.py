# SPDX-License-Identifier: Apache-2.0
"""What holds for every file: licence line, length, nothing left over, nothing of one machine only."""

from __future__ import annotations

import os
import re

import pytest
from source_tree import REPO_ROOT, all_files, code_files, cpp_files, read

LINES_MAX = 600
LICENCE = "SPDX-License-Identifier: " + "Apache-2.0"
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b")
MACHINE_PATH = re.compile(r"(?<![\w.\-])/(?:wor" + r"k|roo" + r"t|far" + r"m)(?:/|\b(?![\w\-.]))")


def named(paths):
    return [str(path.relative_to(REPO_ROOT)) for path in paths]


def has_licence_line(text: str) -> bool:
    """The line is the first, or follows the lines that an interpreter or a linter wants first."""
    return any(LICENCE in line for line in text.splitlines()[:3])


def test_code_is_found():
    assert len(cpp_files()) > 5 and len(code_files()) > len(cpp_files())


def test_licence_line():
    assert named(p for p in code_files() if not has_licence_line(read(p))) == []


@pytest.mark.parametrize("top", ["src", "tests", "bench", "sim"])
def test_the_architecture_names_every_folder(top):
    text = (REPO_ROOT / "docs" / "ARCHITECTURE.md").read_text()
    folders = {path.relative_to(REPO_ROOT / top).parts[0] for path in code_files() if path.is_relative_to(REPO_ROOT / top)}
    folders = {name for name in folders if (REPO_ROOT / top / name).is_dir()}
    assert folders and sorted(name for name in folders if f"`{name}/`" not in text) == []


def test_length():
    assert named(p for p in code_files() if len(read(p).splitlines()) > LINES_MAX) == []


def test_no_leftovers():
    assert named(p for p in code_files() if LEFTOVER.search(read(p))) == []


def test_no_machine_paths():
    assert named(p for p in all_files() if MACHINE_PATH.search(read(p))) == []


@pytest.mark.parametrize(
    "name", ["run", "test", ".ci/run", "bench/report", "tests/nightly", "tools/install_packages", "tools/lint"]
)
def test_is_executable(name):
    assert os.access(REPO_ROOT / name, os.X_OK)


@pytest.mark.parametrize("name", ["LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", ".clang-format"])
def test_is_there(name):
    assert (REPO_ROOT / name).stat().st_size > 0


@pytest.mark.parametrize("folder", ["wor" + "k", "roo" + "t", "far" + "m"])
def test_machine_path_check_itself(folder):
    assert MACHINE_PATH.search(f"see /{folder}/notes")
    assert not MACHINE_PATH.search(f"see docs/{folder}/notes and ../{folder}/x")


def test_other_checks_themselves():
    assert has_licence_line("#!/bin/sh\n# " + LICENCE)
    assert not has_licence_line("\n\n\n\n" + LICENCE)
    assert LEFTOVER.search("// TO" + "DO: later")
    assert not LEFTOVER.search("mastodons")
