# SPDX-License-Identifier: Apache-2.0
"""Where and when a figure was measured: what every JSON line of a result carries."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[1]


def machine() -> str:
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def commit() -> str:
    """The commit that is checked out; `+changes` if files of src/ differ from it.

    $WARPCACHE_COMMIT says it where the programs were carried to without the repository.
    """
    if chosen := os.environ.get("WARPCACHE_COMMIT"):
        return chosen

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(REPO_ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
    return git("rev-parse", "--short", "HEAD") + ("+changes" if changed else "")


def load_average() -> float:
    """Processes that ran or waited to run during the last minute, this one included."""
    return round(os.getloadavg()[0], 1)


def version_of(program: str) -> str:
    """What a memcached calls itself with -V, without its name."""
    return subprocess.run([program, "-V"], capture_output=True, text=True).stdout.strip().split(" ")[-1]


def provenance() -> dict[str, str]:
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return {"machine": machine(), "commit": commit(), "date": date}
