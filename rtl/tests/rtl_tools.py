# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of rtl/, or skips the test where Verilator is absent."""

import hashlib
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = "WARPCACHE_LONG_TESTS" in os.environ
# What has passed, of any checkout: tools/lint's folder, which forgets what is old.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "warpcache" / "lint"


def verilator():
    found = shutil.which("verilator")
    if found is None:
        pytest.skip("no verilator")
    return found


def program(name, absent=None):
    """Its path. `absent`: why it may not be there; else that is a failure."""
    verilator()
    folder = pathlib.Path(os.environ.get("WARPCACHED", ROOT / "build/test/warpcached")).parent
    path = folder / name
    if absent is not None and not path.exists():
        pytest.skip(absent)
    assert path.exists(), f"{path} is not built: cmake --build --preset test --target rtl_programs"
    return path


class Lint:
    """A check of the sources that is not made again while they are as they were when it passed, but at night.

    `files` and `words` decide as well: what checks, the command, the version of the program.
    """

    def __init__(self, files, *words):
        sums = hashlib.sha256("\0".join(map(str, words)).encode())
        for path in sorted({*files, *ROOT.glob("rtl/*/rtl/*.sv*")}):
            sums.update(f"{path.relative_to(ROOT)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
        self.passed = CACHE / f"{sums.hexdigest()}.rtl"

    def is_needed(self):
        if LONG or not self.passed.exists():
            return True
        self.passed.touch()
        return False

    def remember(self):
        self.passed.parent.mkdir(parents=True, exist_ok=True)
        self.passed.touch()


def version_of(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
