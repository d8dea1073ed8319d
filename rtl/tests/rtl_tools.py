# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of rtl/, or skips the test where Verilator is absent."""

import os
import pathlib
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
