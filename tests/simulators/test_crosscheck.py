# SPDX-License-Identifier: Apache-2.0
"""hash-sim's policies against libCacheSim's, in short. Needs `pip install libcachesim`, and hash-sim built."""

from __future__ import annotations

import subprocess
import sys

import pytest
from harness.patience import PATIENCE_S
from harness.programs import REPO_ROOT, find_program

pytest.importorskip("libcachesim")


@pytest.mark.parametrize("stream", ["drift", "block"])
def test_policies_agree(stream):
    program = find_program("hash-sim", "HASH_SIM")
    if program is None:
        pytest.skip("hash-sim is not built")
    command = [sys.executable, str(REPO_ROOT / "sim" / "hitrate" / "crosscheck"), "--program", str(program)]
    result = subprocess.run([*command, "--keys", "10000", "--only", stream], capture_output=True, text=True, timeout=PATIENCE_S)
    assert result.returncode == 0, result.stdout
    assert "all agree" in result.stdout and result.stdout.count("s3fifo") == 6
