# SPDX-License-Identifier: Apache-2.0
"""bench/instructions/run --check does not pass where there is nothing to compare with."""

from __future__ import annotations

import os
import subprocess
import sys

from source_tree import REPO_ROOT
from harness.patience import PATIENCE_S

SKIPPED_STATUS = 77


def test_a_compiler_without_figures_is_skipped(tmp_path):
    readelf = tmp_path / "readelf"
    readelf.write_text("#!/bin/sh\necho '  [     0]  NoSuchCompiler 1.0'\n")
    readelf.chmod(0o755)
    command = [sys.executable, REPO_ROOT / "bench/instructions/run", "--check", "--program", "/bin/true"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, check=False)
    assert done.returncode == SKIPPED_STATUS, done.stderr
    assert done.stdout.startswith("skipped: nothing is recorded for NoSuchCompiler 1.0")
