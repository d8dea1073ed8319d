# SPDX-License-Identifier: Apache-2.0
"""Each difference from memcached that the random comparison lets pass stands in docs/compatibility.md."""

from __future__ import annotations

import re

from source_tree import REPO_ROOT, read

TABLE = re.compile(r"constexpr ListedDifference kListed\[\] = \{(.*?)\n\};", re.DOTALL)
ENTRY = re.compile(r'\{"([^"]+)",\s*"((?:[^"\\]|\\.)+)"')


def entries(source: str) -> list[tuple[str, str]]:
    """Name and anchor of each entry."""
    table = TABLE.search(source)
    return ENTRY.findall(table.group(1)) if table else []


def unlisted(listed: list[tuple[str, str]], document: str) -> list[str]:
    return [name for name, anchor in listed if anchor not in document]


def the_table() -> list[tuple[str, str]]:
    return entries(read(REPO_ROOT / "tests" / "model" / "listed_differences.cc"))


def test_anchors_stand_in_the_document():
    assert unlisted(the_table(), read(REPO_ROOT / "docs" / "compatibility.md")) == []


def test_names_are_unique():
    names = [name for name, _ in the_table()]
    assert len(names) > 5 and len(set(names)) == len(names)


def test_every_entry_is_read():
    source = read(REPO_ROOT / "tests" / "model" / "listed_differences.cc")
    table = TABLE.search(source)
    assert table and len(the_table()) == len(re.findall(r"^ {4}\{", table.group(1), re.MULTILINE))


def test_the_check_itself():
    source = 'constexpr ListedDifference kListed[] = {\n    {"a", "there", f},\n    {"b",\n     "gone", g},\n};'
    assert entries(source) == [("a", "there"), ("b", "gone")]
    assert unlisted(entries(source), "it is there") == ["b"]
