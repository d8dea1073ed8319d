# SPDX-License-Identifier: Apache-2.0
"""Texts of transcripts made bytes: escapes, `{...}`, and values kept from replies."""

from __future__ import annotations

import base64
import re
import time

_ESCAPES = {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "s": b" ", "\\": b"\\", "{": b"{"}
_HEX_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")
_REGEX_VARIABLE = re.compile(r"\{([a-z_]\w*(?:[+-]\d+)?)\}")


def pattern(size: int) -> bytes:
    """Printable bytes in which every position can be told from its neighbours."""
    out = bytearray()
    index = 0
    while len(out) < size:
        out += b"%x." % index
        index += 1
    return bytes(out[:size])


def _closing_brace(text: str, opening: int) -> int:
    depth = 0
    at = opening
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    raise ValueError(f"no closing brace in {text[opening:]!r}")


class Texts:
    """Fills in the texts of one run of a transcript. `variables` holds what replies gave."""

    def __init__(self, pid: int):
        self.variables: dict[str, int | bytes] = {"pid": pid}

    def _number(self, name: str) -> int:
        value = self.variables[name]
        return value if isinstance(value, int) else int(value)

    def _brace(self, text: str) -> bytes:
        """What `{text}` stands for."""
        if match := re.fullmatch(r"(.+)\*(\d+)", text, re.S):
            what, count = match[1], int(match[2])
            if what == "pattern":
                return pattern(count)
            return self.expand(what) * count
        if match := re.fullmatch(r"now([+-]\d+)?", text):
            return b"%d" % (int(time.time()) + int(match[1] or 0))
        if text.startswith("hex:"):
            return bytes.fromhex(text[4:])
        if text.startswith("base64:"):
            return base64.b64encode(self.expand(text[7:]))
        if text.startswith("file:"):
            return text.encode()
        if match := re.fullmatch(r"(\w+)([+-]\d+)", text):
            return b"%d" % (self._number(match[1]) + int(match[2]))
        if text in self.variables:
            value = self.variables[text]
            return b"%d" % value if isinstance(value, int) else value
        raise ValueError(f"unknown expansion {{{text}}}")

    def expand(self, text: str) -> bytes:
        """A line's bytes: escapes resolved and `{...}` (which may nest) filled in."""
        out = bytearray()
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\\":
                if hex_byte := _HEX_ESCAPE.match(text, at):
                    out.append(int(hex_byte[1], 16))
                    at = hex_byte.end()
                    continue
                escape = text[at + 1 : at + 2]
                if escape not in _ESCAPES:
                    raise ValueError(f"unknown escape \\{escape}")
                out += _ESCAPES[escape]
                at += 2
            elif char == "{":
                end = _closing_brace(text, at)
                out += self._brace(text[at + 1 : end])
                at = end + 1
            else:
                out += char.encode()
                at += 1
        return bytes(out)

    def regex(self, text: str) -> re.Pattern[bytes]:
        def variable(match: re.Match[str]) -> str:
            return re.escape(self._brace(match[1])).decode("latin-1")

        return re.compile(_REGEX_VARIABLE.sub(variable, text).encode("latin-1"), re.S)

    def match(self, regex: re.Pattern[bytes], data: bytes) -> bool:
        match = regex.fullmatch(data)
        if match is None:
            return False
        for name, value in match.groupdict().items():
            if value is not None:
                self.variables[name] = value
        return True
