# SPDX-License-Identifier: Apache-2.0
"""The same random commands to warpcached and to memcached, few and from fixed seeds; docs/reliability.md has the long form."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness.fixtures import require_target

COMMANDS = 3000
REGRESSIONS = Path(__file__).parent / "regressions"
TIME_S_MAX = 600


def compare(warpcached: str, memcached: str, protocol: str) -> subprocess.CompletedProcess:
    run_model = Path(require_target("warpcached").path).resolve().parent / "run_model"
    command = [run_model, "--compare", warpcached, "--memcached", memcached, "--first", "1"]
    command += ["--protocol", protocol, "--commands", str(COMMANDS)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX, check=False)


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["text", "meta", "binary"])
def test_warpcached_answers_as_memcached(protocol):
    memcached = require_target("memcached").path
    result = compare(require_target("warpcached").path, memcached, protocol)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " 0 differences that are not listed" in result.stdout


def run_model(*arguments: str) -> subprocess.CompletedProcess:
    program = Path(require_target("warpcached").path).resolve().parent / "run_model"
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=TIME_S_MAX, check=False)


@pytest.mark.parametrize("script", sorted(REGRESSIONS.glob("[0-9]*.txt")), ids=lambda path: path.stem)
def test_a_process_answers_the_regressions_as_the_model(script):
    result = run_model("--server", require_target("warpcached").path, "--replay", str(script))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.long
def test_many_clients_of_one_process_are_answered_as_by_the_model():
    result = run_model("--crowd", "8", "--rounds", "60", "--total", "5000", "--first", "1003", "--server", require_target("warpcached").path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert ", 0 differences" in result.stdout


def test_a_program_that_does_not_start_is_no_success():
    result = compare(require_target("warpcached").path, "/bin/false", "text")
    assert result.returncode == 2 and "does not start" in result.stderr


def test_a_server_that_answers_otherwise_is_noticed(tmp_path):
    without_cas = tmp_path / "warpcached"
    without_cas.write_text(f'#!/bin/sh\nexec {require_target("warpcached").path} -C "$@"\n')
    without_cas.chmod(0o755)
    result = compare(str(without_cas), require_target("memcached").path, "text")
    assert result.returncode == 1 and "warpcached: VALUE" in result.stdout, result.stdout
