# SPDX-License-Identifier: Apache-2.0
"""What all workers of a test session share, made by the first one that needs it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the session that `make` has filled. Where that fails, the next one tries again."""
    base = factory.getbasetemp()
    # Workers have folders of their own below that of the session.
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = root / name
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            (folder / "made").touch()
    return folder
