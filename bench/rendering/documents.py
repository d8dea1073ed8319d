# SPDX-License-Identifier: Apache-2.0
"""Markers in documents, and what stands between them.

<!-- report: NAME -->          a table: lines of their own
<!-- /report -->
<!--= NAME-->TEXT<!--/-->      a value in a sentence
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rendering.markdown import WIDTH_MAX
from rendering.png import text_of
from rendering.registry import BLOCKS, PLOTS, VALUES
from rendering.rows import REPO_ROOT, DataError, digest

BLOCK = re.compile(r"<!-- report: (?P<name>\S+) -->\n(?P<body>.*?)<!-- /report -->", re.DOTALL)
VALUE = re.compile(r"<!--= (?P<name>\S+?)-->(?P<body>.*?)<!--/-->", re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)\s]*plots/(?P<name>[\w-]+)\.png)\)")
MARKER = re.compile(r"<!--(?:= | report: | /report|/-->)")
CODE = re.compile(r"(^```.*?^```|^ {4,}\S.*?$)", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"`[^`\n]*`|\]\([^)]*\)")
# A measured number: with a unit, or with decimals. Sizes of what is asked for have no such unit.
MEASURED = re.compile(
    r"(?<![\w.#])\d[\d.,]*(?:\s?(?:us|ms|ns|%|percent|points|times|[kMG]/s|[kMG] (?:gets|sets|requests)|GB/s|MiB|W)(?![\w])"
    r"|(?<=\.\d)(?![\w.])|(?<=\.\d\d)(?![\w.]))"
)
# Versions, parameters of a load and numbers of sections are not measured.
NAMED = re.compile(
    r"(?:memcached|warpcached|Zipf|Ubuntu|Debian|CUDA|[Ss]ection|[Ff]igure|[Cc]hapter|Apache-)\s?\d[\d.]*\d"
)
# In these every measured number is rendered.
ALL_RENDERED = ("README.md", "docs/performance.md")
PLOTS_FOLDER = REPO_ROOT / "docs" / "plots"
PLOT_KEY = "warpcache-rows"


def documents(root: Path = REPO_ROOT) -> list[Path]:
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name != "build" and not name.startswith(".")]
        found += [Path(folder) / name for name in names if name.endswith(".md")]
    return sorted(found)


def to_root(path: Path, root: Path = REPO_ROOT) -> str:
    return "../" * (len(path.relative_to(root).parts) - 1)


def rendered_by(registered: dict, name: str, kind: str, used: set[str] | None) -> str:
    if name not in registered:
        raise DataError(f"no {kind} is called {name}")
    if used is not None:
        used.add(name)
    try:
        return registered[name]()
    except (LookupError, ValueError, TypeError) as error:
        raise DataError(f"{name}: bench/results lacks a row or a field of it ({error!r})") from error


def render(text: str, root: str, used: set[str] | None = None) -> str:
    """The text with what is between its markers rendered anew. `root`: the way to the top folder."""

    def table(match: re.Match) -> str:
        name = match["name"]
        body = rendered_by(BLOCKS, name, "table", used).replace("{root}", root)
        return f"<!-- report: {name} -->\n{body}\n<!-- /report -->"

    def value(match: re.Match) -> str:
        name = match["name"]
        return f"<!--= {name}-->{rendered_by(VALUES, name, 'value', used)}<!--/-->"

    def outside_code(piece: str) -> str:
        rendered = VALUE.sub(value, BLOCK.sub(table, piece))
        rest = VALUE.sub("", BLOCK.sub("", rendered))
        if MARKER.search(rest):
            raise DataError(f"a marker without its other half: {MARKER.search(rest)[0]}")
        return rendered

    # With the pattern's group, every second piece is code.
    return "".join(piece if at % 2 else outside_code(piece) for at, piece in enumerate(CODE.split(text)))


def unrendered_numbers(text: str) -> list[str]:
    """Measured numbers outside of markers and of code."""
    rest = NAMED.sub(" ", INLINE_CODE.sub(" ", CODE.sub(" ", VALUE.sub(" ", BLOCK.sub(" ", text)))))
    return [" ".join(match[0].split()) for match in MEASURED.finditer(rest)]


def long_lines(text: str) -> list[str]:
    """Lines of rendered tables that no screen shows whole."""
    return [line for match in BLOCK.finditer(text) for line in match["body"].splitlines() if len(line) > WIDTH_MAX]


def check_document(path: Path, used: set[str], root: Path = REPO_ROOT) -> list[str]:
    name, text = path.relative_to(root).as_posix(), path.read_text()
    pictures = [plot for _, plot in PICTURE.findall(CODE.sub("", text))]
    found = [f"{name}: no plot is called {plot}" for plot in pictures if plot not in PLOTS]
    used.update(pictures)
    try:
        if render(text, to_root(path, root), used) != text:
            found.append(f"{name}: what it shows is not what bench/results holds (bench/report renders it)")
    except DataError as error:
        found.append(f"{name}: {error}")
    found += [f"{name}: a line of {len(line)} characters: {line[:60]}..." for line in long_lines(text)]
    if name in ALL_RENDERED:
        found += [f"{name}: not rendered from data: {number}" for number in unrendered_numbers(text)]
    return found


def check_plots(folder: Path = PLOTS_FOLDER) -> list[str]:
    """Each plot was drawn from the rows that there are now."""
    found = []
    for name, plot in PLOTS.items():
        path = folder / f"{name}.png"
        if not path.exists():
            found.append(f"docs/plots/{name}.png is missing (bench/report --plots draws it)")
        elif text_of(path, PLOT_KEY) != digest(plot.rows()):
            found.append(f"docs/plots/{name}.png was drawn from other rows (bench/report --plots)")
    extra = {path.name for path in folder.iterdir()} - {f"{name}.png" for name in PLOTS}
    return found + [f"docs/plots/{name}: nothing draws it" for name in sorted(extra)]


def check_all() -> list[str]:
    used: set[str] = set()
    found = [error for path in documents() for error in check_document(path, used)]
    unused = sorted({*BLOCKS, *PLOTS} - used)
    return found + check_plots() + [f"{name}: rendered, but no document shows it" for name in unused]


def write_all() -> list[Path]:
    changed = []
    for path in documents():
        text = path.read_text()
        rendered = render(text, to_root(path))
        if rendered != text:
            path.write_text(rendered)
            changed.append(path)
    return changed
