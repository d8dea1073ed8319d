# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown, and how numbers are written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH_MAX = 120


def table(head: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    """The first column to the left, the others to the right."""
    head = [str(cell) for cell in head]
    marks = ["---"] + ["--:"] * (len(head) - 1)
    texts = [[str(cell) for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, marks, *texts))


def text_table(head: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    """All columns to the left: for words."""
    head = list(head)
    texts = [[str(cell) for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *texts))


def note(text: str) -> str:
    """Below a table, in lines that fit a screen."""
    return "\n".join(textwrap.wrap(text, WIDTH_MAX, break_long_words=False, break_on_hyphens=False))


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}%"


def three(value: float) -> str:
    """With three figures: 0.311, 5.63, 17.0, 498, 12345."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def per_second(rate: float) -> str:
    """950, 12.3 k, 1.23 M, 498 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{three(rate / size)} {unit}"
    return f"{rate:.0f}"


def microseconds(value: float) -> str:
    """In us below 1 ms, in ms above."""
    if value >= 9950:
        return f"{value / 1000:.0f} ms"
    return f"{value / 1000:.1f} ms" if value >= 995 else f"{three(value)} us"
