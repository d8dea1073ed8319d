# SPDX-License-Identifier: Apache-2.0
"""What the structure checks read: the files of this repository, sorted by kind."""

from __future__ import annotations

import os
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[2]
CODE_SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".cmake"}
CODE_NAMES = {"CMakeLists.txt", "run", "test", "report", "install_packages", "device_compile", "lint", "nightly"}
CPP_SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
HIDDEN_FOLDERS_OF_OURS = {".ci", ".github"}


def is_ours(folder: str) -> bool:
    """Not build products, and not what tools keep for themselves."""
    if folder.startswith("."):
        return folder in HIDDEN_FOLDERS_OF_OURS
    return folder not in {"build", "__pycache__"}


def all_files(root: Path = REPO_ROOT) -> list[Path]:
    """Every file of the tree, build products and caches left out."""
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(filter(is_ours, subfolders))
        found += [Path(folder) / name for name in sorted(names) if name != ".git"]  # a worktree's
    return [path for path in found if not path.is_symlink()]


def code_files(root: Path = REPO_ROOT) -> list[Path]:
    return [p for p in all_files(root) if p.suffix in CODE_SUFFIXES or p.name in CODE_NAMES]


def cpp_files(root: Path = REPO_ROOT) -> list[Path]:
    return [p for p in all_files(root) if p.suffix in CPP_SUFFIXES]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
