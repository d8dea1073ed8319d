# SPDX-License-Identifier: Apache-2.0
"""The transcript language: parsing. tests/transcripts/README.md describes it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

TARGETS = ("warpcached", "memcached")
TRANSPORTS = ("tcp", "udp", "unix", "split", "tcp6")
DEFAULT_TRANSPORTS = ("tcp", "unix", "split")

# verb -> whether it needs an argument
VERBS = {
    ">": False,
    ">-": True,
    ">b": True,
    ">h": True,
    ">d": True,
    "<": False,
    "<-": True,
    "<b": True,
    "<h": True,
    "<d": True,
    "~": True,
    "...": True,
    "...b": True,
    "?": True,
    "?!": True,
    "sleep": True,
    "pass": True,
    "silence": False,
    "closed": False,
    "close": False,
    "half-close": False,
    "reset": False,
    "within": True,
    "exited": False,
}
SENDS = frozenset({">", ">-", ">b", ">h"})

_HEADER = re.compile(
    r"(title|options|transports|server|clock|only|reason|barrier|env|file\.[\w.-]+):\s*(.*)"
)
_STEP = re.compile(
    r"(?:@(?P<conn>\w+)\s*)?"
    r"(?:(?P<target>warpcached|memcached):\s*)?"
    r"(?:(?P<verb>>-|>b|>h|>d|>|<-|<b|<h|<d|<|~|\.\.\.b|\.\.\.|\?!|\?|[a-z][a-z-]*)"
    r"(?:\s(?P<rest>.*))?)?$",
    re.S,
)


class TranscriptError(Exception):
    """The transcript itself is malformed."""


@dataclass(frozen=True)
class Step:
    line: int
    verb: str
    text: str
    conn: str
    target: str | None  # None: for every target
    source: str


@dataclass
class Transcript:
    path: Path
    title: str = ""
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    transports: tuple[str, ...] = DEFAULT_TRANSPORTS
    fresh: bool = False
    clock_stands: bool = False
    only: str | None = None
    barrier: bool = True
    groups: list[list[Step]] = field(default_factory=list)

    def runs_on(self, target: str) -> bool:
        return self.only is None or self.only == target

    def steps(self) -> list[Step]:
        return [step for group in self.groups for step in group]


def parse(path: Path) -> Transcript:
    """Reads a transcript. Raises TranscriptError with file and line."""
    transcript = Transcript(path)
    in_header = True
    reason = ""
    conn = "1"
    explained = any_reason = False
    group: list[Step] = []

    def fail(line: int, message: str) -> None:
        raise TranscriptError(f"{path}:{line}: {message}")

    for number, raw in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        line = raw.rstrip("\r")
        stripped = line.strip()
        if stripped.startswith("#"):
            if stripped.startswith("# differs:"):
                why = stripped.removeprefix("# differs:").strip()
                explained = len(why) > 20 or (any_reason and why.startswith("as above"))
                any_reason = any_reason or explained
            continue
        if line != line.rstrip():
            fail(number, "blanks at the end of a line: write \\s")
        if not stripped:
            explained = False
            if group:
                transcript.groups.append(group)
                group = []
            continue
        if in_header and (header := _HEADER.match(stripped)):
            key, value = header.groups()
            if key == "reason":
                reason = value
            else:
                _set_header(transcript, key, value, lambda m, n=number: fail(n, m))
            continue
        in_header = False
        match = _STEP.match(line.lstrip())
        if match is None:
            fail(number, f"not a step: {line!r}")
        if match["conn"] and match["verb"] is None and match["target"] is None:
            conn = match["conn"]  # "@name" alone: this connection from here on
            continue
        verb = match["verb"]
        if verb not in VERBS:
            fail(number, f"unknown verb {verb!r}")
        if VERBS[verb] and not match["rest"]:
            fail(number, f"{verb!r} needs an argument")
        if match["target"] and not explained:
            fail(number, "a step for one target needs '# differs: reason' above it")
        group.append(
            Step(number, verb, match["rest"] or "", match["conn"] or conn, match["target"], line)
        )
    if group:
        transcript.groups.append(group)
    if transcript.only and not reason:
        fail(1, "'only:' needs a 'reason:'")
    if not transcript.title:
        fail(1, "no 'title:'")
    if not transcript.groups:
        fail(1, "no steps")
    if transcript.clock_stands and not transcript.fresh:
        fail(1, "'clock: stands' needs 'server: fresh'")
    return transcript


def _set_header(transcript: Transcript, key: str, value: str, fail) -> None:
    if key == "title":
        transcript.title = value
    elif key == "options":
        transcript.options = tuple(shlex.split(value))
    elif key == "transports":
        transcript.transports = tuple(value.split())
        if unknown := set(transcript.transports) - set(TRANSPORTS):
            fail(f"unknown transport(s) {sorted(unknown)}")
    elif key == "server":
        if value not in ("fresh", "shared"):
            fail("server: fresh or shared")
        transcript.fresh = value == "fresh"
    elif key == "clock":
        if value not in ("stands", "runs"):
            fail("clock: stands or runs")
        transcript.clock_stands = value == "stands"
    elif key == "only":
        if value not in TARGETS:
            fail(f"only: one of {TARGETS}")
        transcript.only = value
    elif key == "barrier":
        if value not in ("yes", "no"):
            fail("barrier: yes or no")
        transcript.barrier = value == "yes"
    elif key == "env":
        name, _, content = value.partition("=")
        transcript.env[name] = content
    else:
        text = value.encode().decode("unicode_escape")
        transcript.files[key.removeprefix("file.")] = text
