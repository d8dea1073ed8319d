# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.patience import PATIENCE_S

FAILING = """
from harness.fixtures import require_target
from harness.servers import start_server

def test_that_fails():
    server = start_server(require_target("warpcached"), unix=True)
    print("server", server.pid, server.socket_path)
    assert server.stop is None
"""


def test_the_server_of_a_test_that_fails_is_ended(tmp_path):
    (tmp_path / "test_failing.py").write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-p", "harness.fixtures", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    command += ["-o", f"pythonpath={Path(__file__).resolve().parents[1]}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1, done.stdout
    pid, path = next(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("server "))
    assert not Path(f"/proc/{pid}").exists() and not Path(path).exists()
