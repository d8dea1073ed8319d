# SPDX-License-Identifier: Apache-2.0
"""Relative links of the documents lead to files of the tree, and their anchors to headings."""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import all_files, read

LINK = re.compile(r"(?<!`)\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```|^ {4,}\S.*?$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(?P<text>.+?)\s*#*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^[a-z]+:")


def anchors(text: str) -> set[str]:
    """What a heading is called in links: lower case, words joined by dashes, a number where it repeats."""
    found: dict[str, int] = {}
    names = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = found.get(name, 0)
        found[name] = number + 1
        names.add(f"{name}-{number}" if number else name)
    return names


def broken(path: Path, text: str) -> list[str]:
    """The links of a document that lead nowhere."""
    found = []
    for target in LINK.findall(FENCED.sub("", text)):
        if ELSEWHERE.match(target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve() if name else path
        if not other.exists():
            found.append(f"{path.name}: {target} is not there")
        elif anchor and other.suffix == ".md" and anchor not in anchors(text if other == path else read(other)):
            found.append(f"{path.name}: {target} has no such heading")
    return found


def test_links_lead_somewhere():
    documents = [path for path in all_files() if path.suffix == ".md"]
    assert len(documents) > 10
    assert [error for path in documents for error in broken(path, read(path))] == []


def test_the_check_itself(tmp_path):
    other = tmp_path / "other.md"
    other.write_text("# Top\n\n## Words of `-o`\n\n## Twice\n\n## Twice\n")
    here = tmp_path / "here.md"
    here.touch()
    good = "[a](other.md) [b](other.md#words-of--o) [c](#top) [d](https://example.org/x) [e](other.md#twice-1)\n"
    bad = "[a](gone.md) [b](other.md#gone) [c](#gone)\n"
    assert broken(here, "# Top\n" + good) == []
    assert len(broken(here, "# Top\n" + bad)) == 3
    assert broken(here, "    [a](gone.md)\n") == []
