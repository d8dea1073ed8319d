# SPDX-License-Identifier: Apache-2.0
"""Random requests of the model in Ethernet frames, few and from fixed seeds: `run_model --frames` plays as many as are wanted."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from harness.fixtures import require_dpdk, require_target

LONG = "WARPCACHE_LONG_TESTS" in os.environ
TIME_S_MAX = 100_000 if LONG else 500


def play(link: str, *options: str) -> subprocess.CompletedProcess:
    # The simulated GPU's program starts the one that this variable names.
    simulated = os.environ.get("SIMT_WARPCACHED")
    program = Path(simulated or require_target("warpcached").path).resolve()
    run_model = program.with_name("run_model")
    if not run_model.exists():
        pytest.skip("run_model is not built beside the server")
    engine = ["--engine", "cuda"] if simulated else []
    environment = {**os.environ, "SIMT_GPU": "1"} if simulated else None
    command = [run_model, "--frames", link, "--server", program, "--first", "1", *engine, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX, check=False, env=environment)


def played(link: str, requests: int) -> None:
    outcome = play(link, "--players", "64", "--rounds", "16", "--requests", str(requests))
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    found = re.search(r"(\d+) requests in frames, 0 differences", outcome.stdout)
    assert found and int(found.group(1)) >= requests, outcome.stdout


@pytest.mark.long
def test_through_shared_memory():
    require_dpdk()
    played("memif", 10_000_000 if LONG else 3000)


@pytest.mark.long
def test_through_pipes():
    played("pipes", 1_000_000 if LONG else 2000)


@pytest.mark.not_on_gpu
def test_refusals(tmp_path):
    assert "usage" in play("nothing").stderr
    server = tmp_path / "warpcached"
    server.write_text("#!/bin/sh\nexit 1\n")
    server.chmod(0o755)
    outcome = play("pipes", "--server", str(server))
    assert outcome.returncode == 2 and "does not start" in outcome.stderr


@pytest.mark.not_on_gpu
def test_a_server_that_answers_otherwise_is_noticed(tmp_path):
    without_cas = tmp_path / "warpcached"
    without_cas.write_text(f'#!/bin/sh\nexec {require_target("warpcached").path} -C "$@"\n')
    without_cas.chmod(0o755)
    outcome = play("pipes", "--server", str(without_cas), "--players", "16", "--rounds", "16", "--requests", "2000")
    assert outcome.returncode == 1 and " 0 differences" not in outcome.stdout, outcome.stdout + outcome.stderr
