#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py FOLDER...: one table over the parts that tools/parts.sh recorded. A part that ran several folders of
tests has a line for each of them below its own.

The last line reads `N passed, N failed, N skipped`; the exit status is 1 if anything failed.
A part whose report is missing, unreadable or without a single test that ran is a failure.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED_STATUS = 77
FAILURES_LISTED_MAX = 40


@dataclass
class Part:
    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of what the part has waited for: daemons are not among it
    notes: list[str] = field(default_factory=list)
    folders: dict[str, Counter] = field(default_factory=dict)  # outcomes of pytest's tests

    def fail(self, note: str) -> None:
        self.failed += 1
        self.notes.append(note)


def case_name(case: ElementTree.Element) -> str:
    """ctest puts the whole name into both attributes, pytest one half into each."""
    whole, last = case.get("classname", ""), case.get("name", "")
    return last if whole in ("", last) else f"{whole}.{last}"


def count_report(part: Part, report: Path, status: int) -> None:
    """Adds the cases of a JUnit file (ctest's or pytest's) to `part`."""
    try:
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        part.fail(f"no usable report ({error})")
        return
    for case in cases:
        tags = {child.tag for child in case}
        if tags & {"failure", "error"} or case.get("status") == "fail":
            outcome = "failed"
            part.fail(case_name(case))
        elif "skipped" in tags or case.get("status") in ("notrun", "disabled"):
            outcome = "skipped"
            part.skipped += 1
        else:
            outcome = "passed"
            part.passed += 1
        folder = re.match(r"(?:tests|testing|bench)\.(\w+)\.", case.get("classname", ""))
        if folder:
            part.folders.setdefault(folder[1], Counter())[outcome] += 1
    if part.passed + part.failed == 0:
        part.fail("no test ran")
    elif status != 0 and part.failed == 0:
        part.fail(f"exit status {status}")


def read_part(record: Path) -> Part:
    name, status_text, start, end, report, cpu_ms = record.read_text().rstrip("\n").split("\t")
    status = int(status_text)
    part = Part(name, seconds=float(end) - float(start), cpu_seconds=int(cpu_ms) / 1000)
    if report != "-":
        count_report(part, Path(report), status)
    elif status == 0:
        part.passed = 1
    elif status == SKIPPED_STATUS:
        part.skipped = 1
    else:
        part.fail(f"exit status {status}")
    return part


def main(folders: list[str]) -> int:
    parts = []
    for folder in folders:
        records = sorted(Path(folder).glob("*.part"))
        found = [read_part(r) for r in records] or [Part("all", failed=1, notes=["no part ran"])]
        if len(folders) > 1:
            for part in found:
                part.name = f"{Path(folder).name}: {part.name}"
        parts += found
    print(f"\n{'part':<24}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>10}{'CPU':>10}")
    for part in parts:
        print(f"{part.name:<24}{part.passed:>8}{part.failed:>8}{part.skipped:>9}"
              f"{part.seconds:>8.1f} s{part.cpu_seconds:>8.1f} s")
        for folder, outcomes in sorted(part.folders.items()) if len(part.folders) > 1 else ():
            print(f"  {folder:<22}{outcomes['passed']:>8}{outcomes['failed']:>8}{outcomes['skipped']:>9}")
    notes = [f"failed: {part.name}: {note}" for part in parts for note in part.notes]
    print("\n".join(notes[:FAILURES_LISTED_MAX]))
    if len(notes) > FAILURES_LISTED_MAX:
        print(f"... and {len(notes) - FAILURES_LISTED_MAX} more")
    failed = sum(part.failed for part in parts)
    print(f"{sum(part.passed for part in parts)} passed, {failed} failed, "
          f"{sum(part.skipped for part in parts)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
