# SPDX-License-Identifier: Apache-2.0
"""The rows of bench/results, and the line that says where rows come from."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from pathlib import Path

from rendering.markdown import note

REPO_ROOT = Path(__file__).resolve().parents[2]
RESULTS = REPO_ROOT / "bench" / "results"

Rows = list[dict]


class DataError(Exception):
    """The rows do not hold what a document shows of them."""


@functools.cache
def read(name: str) -> tuple[dict, ...]:
    return tuple(json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines())


def rows(name: str, **wanted: object) -> Rows:
    """The rows of bench/results/NAME.jsonl whose fields have these values."""
    return pick(list(read(name)), **wanted)


def pick(found: Rows, **wanted: object) -> Rows:
    return [row for row in found if all(row.get(key) == value for key, value in wanted.items())]


def only(found: Rows, **wanted: object) -> dict:
    """The one row whose fields have these values."""
    chosen = pick(found, **wanted)
    if len(chosen) != 1:
        raise DataError(f"{len(chosen)} rows instead of one with {wanted}")
    return chosen[0]


def digest(found: Rows) -> str:
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def short_machine(name: str) -> str:
    """A machine's name without the parts that say nothing to a reader."""
    return re.sub(r"\(R\)| Processor|, Linux.*?(?=,|$)|, (?:driver )?\d+\.\d+\.\d+|, PCIe 5 x16", "", name)


def several(values: list[str]) -> str:
    return " and ".join(sorted(set(values)))


def source(found: Rows, *files: str) -> str:
    """The line below a table: which rows it shows, where and when they were measured."""
    links = ", ".join(f"[{name}.jsonl]({{root}}bench/results/{name}.jsonl)" for name in files)
    commands = sorted({row["command"] for row in found if "command" in row})
    command = f"`{commands[0]}`; " if len(commands) == 1 else ""
    machines = several([short_machine(row["machine"]) for row in found])
    commits = sorted({row["commit"] for row in found})
    dates = sorted({row["date"][:10] for row in found})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    loads = [row["load_average"] for row in found if "load_average" in row]
    beside = f"; load average {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    yardstick = "".join(
        f"memcached {version}; " for version in sorted({row["memcached"] for row in found if "memcached" in row})
    )
    text = f"{command}{yardstick}{machines}; commit {', '.join(commits)}; {when}{beside}. Rows: {links}"
    return note(text)
