# SPDX-License-Identifier: Apache-2.0
"""Limits that only a hanging test may reach are PATIENCE_S: one of some tens of seconds is reached on a busy machine."""

from __future__ import annotations

import re

import pytest
from source_tree import REPO_ROOT, read

PATIENCE_S = 300  # testing/harness/patience.py
SHORT_S = 10  # a test may wait for this long for what must not come
LIMIT = re.compile(
    r"(?<![\w\"'-])(?:timeout|timeout_s|socket_timeout|connect_timeout)=(\d+)(?:\.0)?(?![\d.])"
    r"|\.(?:settimeout|connect|join)\((\d+)(?:\.0)?\)"
)


def limits(text: str) -> list[str]:
    """Numbers in the text that are such a limit, and too low."""
    return [m[0] for m in LIMIT.finditer(text) if SHORT_S < int(m[1] or m[2]) < PATIENCE_S]


def test_limits_are_those_of_patience():
    files = [path for folder in ("tests", "testing", "rtl") for path in (REPO_ROOT / folder).rglob("*.py")]
    files = [path for path in files if "soak" not in path.parts and path.name != "test_patience.py"]
    assert len(files) > 50
    found = [f"{path.relative_to(REPO_ROOT)}: {limit}" for path in files for limit in limits(read(path))]
    assert found == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("run(x, timeout=60)", 1),
        ("sock.settimeout(60.0)", 1),
        ("server.connect(20.0)", 1),
        ("run(x, timeout=PATIENCE_S)", 0),
        ("run(x, timeout=300)", 0),
        ("sock.settimeout(0.2)", 0),
        ('start_server("-o", "idle_timeout=60")', 0),
        ("dead_timeout=60", 0),
    ],
)
def test_the_check_itself(text, count):
    assert len(limits(text)) == count
