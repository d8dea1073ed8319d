# SPDX-License-Identifier: Apache-2.0
"""Documents show what bench/results holds: bench/report --check, and that it can fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness.patience import PATIENCE_S
from source_tree import REPO_ROOT

NEEDED = ("bench", "docs", "sim", "README.md")


def check(root: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-S", str(root / "bench" / "report"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """The documents, their data and the renderer, for tests that change one of them and put it back."""
    root = tmp_path_factory.mktemp("tree")
    for name in NEEDED:
        source = REPO_ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, root / name)
    return root


def test_documents_and_data_agree():
    result = check(REPO_ROOT)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("bench/results/memory.jsonl", '"hit_ratio": 0.', '"hit_ratio": 0.1', "README.md: what it shows"),
        ("docs/performance.md", "<!-- report: compare -->", "<!-- report: compare-gone -->", "no table is called"),
        ("docs/performance.md", "<!-- /report -->", "", "docs/performance.md"),
        ("README.md", "## Two commands", "A get takes 5.4 us.\n\n## Two commands", "not rendered from data: 5.4 us"),
        (
            "bench/results/growth.jsonl",
            '"cpu_us_per_key": 7.1',
            '"cpu_us_per_key": 7.2',
            "growth.png was drawn from other",
        ),
        ("bench/results/growth.jsonl", '"x": 1,', '"x": 3,', "growth-threads: bench/results lacks a row"),
    ],
)
def test_the_check_itself(copied, name, old, new, says):
    path = copied / name
    text = path.read_text()
    assert old in text
    try:
        path.write_text(text.replace(old, new, 1))
        result = check(copied)
        assert result.returncode == 1 and says in result.stderr
    finally:
        path.write_text(text)
