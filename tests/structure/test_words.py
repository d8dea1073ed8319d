# SPDX-License-Identifier: Apache-2.0
"""The words that docs/GLOSSARY.md says are not used: in comments, documents and names of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from source_tree import REPO_ROOT, all_files, read

GLOSSARY = "docs/GLOSSARY.md"
TABLE = re.compile(r"<!-- words: begin -->\n(.*?)<!-- words: end -->", re.DOTALL)
# Not ours to word: data, pictures, and what others have written.
NOT_READ = ("fuzz/corpus/", "bench/results/", "docs/plots/", "LICENSE")
NO_TEXT = {".png"}
SELF = (GLOSSARY, "tests/structure/test_words.py")
FORMS = r"(?:s|es|ed|d|ing)?"


def forms_of(word: str) -> str:
    """A pattern for the word and its regular forms."""
    return re.escape(word[:-1]) + r"(?:e|es|ed|ing)" if word.endswith("e") else re.escape(word) + FORMS


@dataclass(frozen=True)
class Word:
    text: str
    instead: str
    allowed_files: tuple[str, ...]
    allowed_phrases: tuple[str, ...]

    def pattern(self) -> re.Pattern[str]:
        """Whole words in text; in names as a part between underscores or capitals."""
        parts = self.text.split()
        plain = r"(?<![A-Za-z])" + r"[\s_-]+(?:(?://|#)\s*)?".join(map(forms_of, parts))
        camel = r"(?-i:(?<=[a-z0-9])" + "".join(p.capitalize() for p in parts) + FORMS
        start = r"(?-i:(?<![A-Za-z])" + "".join(p.capitalize() for p in parts) + FORMS + r"(?=[A-Z]))"
        return re.compile(rf"{plain}(?![A-Za-z])|{camel}(?![a-z]))|{start}", re.IGNORECASE)


def words_of(glossary: str) -> list[Word]:
    table = TABLE.search(glossary)
    lines = table.group(1).splitlines() if table else []
    rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]
    found = []
    for row in rows[2:]:
        phrases = tuple(re.findall(r'"([^"]+)"', row[2]))
        files = tuple(part for part in re.sub(r'"[^"]+"', "", row[2]).replace(",", " ").split())
        found.append(Word(row[0], row[1], files, phrases))
    return found


def uses(word: Word, name: str, text: str) -> list[str]:
    """Where `text`, the file `name`, or its name uses the word."""
    if name in word.allowed_files:
        return []
    for phrase in word.allowed_phrases:
        text = text.replace(phrase, "")
    if word.text.split()[0].lower().removesuffix("e") not in (name + text).lower():
        return []
    pattern = word.pattern()
    found = [f"{name}: the file's name"] if pattern.search(name) else []
    for match in pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found.append(f"{name}:{line}: {match.group(0)!r}, write: {word.instead}")
    return found


def test_the_table_is_read():
    words = words_of(read(REPO_ROOT / GLOSSARY))
    assert len(words) > 10 and all(word.text and word.instead for word in words)


def files_of_ours() -> list[Path]:
    names = {path: str(path.relative_to(REPO_ROOT)) for path in all_files() if path.suffix not in NO_TEXT}
    return [path for path, name in names.items() if name not in SELF and not name.startswith(NOT_READ)]


def test_words_that_are_not_used():
    words = words_of(read(REPO_ROOT / GLOSSARY))
    found = []
    for path in files_of_ours():
        name, text = str(path.relative_to(REPO_ROOT)), read(path)
        for word in words:
            found += uses(word, name, text)
    assert found == [], f"{len(found)} uses"


def test_files_of_every_kind_are_read():
    """Also logic, pages, dialogues, scripts without a suffix, and C."""
    read_ones = files_of_ours()
    assert {path.suffix for path in all_files()} - {path.suffix for path in read_ones} == {".jsonl", ".png"}
    assert REPO_ROOT / "run" in read_ones
    assert any(path.is_relative_to(REPO_ROOT / "tests" / "transcripts" / "text") for path in read_ones)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a crew of workers", True),
        ("class Crew;", True),
        ("kCrewMax", True),
        ("crew_share(x)", True),
        ("two crews", True),
        ("a screw", False),
        ("Discrewed", False),
        ("the network crew", False),
        ("so\n// many parts", True),
        ("kSoManyParts", True),
        ("it makes room", True),
        ("making\n// room", True),
        ("a maker roomed", False),
        ("so_many", True),
    ],
)
def test_the_check_itself(text, found):
    table = (
        "<!-- words: begin -->\n| not | write | allowed in |\n|---|---|---|\n"
        '| crew | worker group | "network crew" |\n| so many | a number | |\n| make room | reclaim | |\n<!-- words: end -->'
    )
    assert any(uses(word, "a/file.h", text) for word in words_of(table)) == found


def test_names_of_files_are_read():
    word = Word("crew", "worker group", ("b/crew.h",), ())
    assert uses(word, "a/crew_share.h", "") and not uses(word, "b/crew.h", "crew")
