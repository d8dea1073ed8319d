# SPDX-License-Identifier: Apache-2.0
"""Running warpcache-load, and servers for it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.programs import find_load_generator

TIME_S_MAX = PATIENCE_S


@dataclass(frozen=True)
class Outcome:
    status: int
    report: dict | None
    table: str
    errors: str


@pytest.fixture(scope="session")
def load():
    """Runs the generator against `server` (its argument); a report comes with every run that ends."""
    program = find_load_generator()
    if program is None:
        pytest.fail("warpcache-load is not built (set WARPCACHE_LOAD=path)", pytrace=False)

    def run(server: str, *arguments: str, tmp_path: Path) -> Outcome:
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        command = [str(program), server, "--json", str(report), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX)
        found = json.loads(report.read_text()) if report.exists() else None
        return Outcome(done.returncode, found, done.stdout, done.stderr)

    return run


@pytest.fixture(params=["warpcached", "memcached"])
def target(request):
    return require_target(request.param)


@pytest.fixture
def server(target, server_pool):
    """A shared server that listens on TCP and UDP, at one port."""
    shared = server_pool.get(target, (), "udp")
    yield shared
    assert shared.alive(), shared.log()
