# SPDX-License-Identifier: Apache-2.0
"""The mutants of mutants.toml, the sources that contain them, and the outcome of a test program."""

from __future__ import annotations

import enum
import os
import subprocess
import tomllib
from pathlib import Path

MUTANTS_FILE = Path(__file__).with_name("mutants.toml")


def read_mutants() -> list[dict]:
    return tomllib.loads(MUTANTS_FILE.read_text())["mutant"]


def mutate(root: Path, mutants: list[dict]) -> tuple[dict[Path, str], list[str]]:
    """The changed files below `root` as texts, and an error for each edit that does not apply: its old
    text must occur once in its file, and earlier edits must not change it."""
    texts: dict[Path, str] = {}
    misfits = []
    for number, mutant in enumerate(mutants):
        for edit in mutant["edit"]:
            path = root / edit["file"]
            if path not in texts:
                texts[path] = path.read_text() if path.is_file() else ""
            times = texts[path].count(edit["old"])
            if times == 1:
                new = edit["new"].replace("MUTANT", f"(wc_mutant == {number})")
                texts[path] = texts[path].replace(edit["old"], new)
            else:
                where = f"{times} times in" if path.is_file() else "no file"
                misfits.append(f"{mutant['name']}: {where} {edit['file']}: {edit['old']!r}")
    return texts, misfits


class Outcome(enum.Enum):
    """The outcome of a test program. After a crash or a time-out no test has failed."""

    PASSED = "passed"
    FAILED = "failed"
    CRASH = "crash"
    TIME_OUT = "time-out"


def run_tests(command: list[str], mutant: int, time_s_max: float) -> tuple[Outcome, str]:
    """Runs a GoogleTest program with this mutant on (-1: none). Returns its outcome and its output."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    environment = {**os.environ, "WC_MUTANT": str(mutant)}
    try:
        done = subprocess.run(command, env=environment, timeout=time_s_max, check=False, **how)
    except subprocess.TimeoutExpired:
        return Outcome.TIME_OUT, ""
    if done.returncode == 0:
        return Outcome.PASSED, done.stdout
    # GoogleTest ends with 1 after a failed expectation.
    return (Outcome.FAILED if done.returncode == 1 else Outcome.CRASH), done.stdout
