# SPDX-License-Identifier: Apache-2.0
"""The text that a PNG file carries, read without any library for pictures."""

from __future__ import annotations

import struct
from pathlib import Path

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def text_of(path: Path, key: str) -> str | None:
    """The tEXt chunk with this key, or None."""
    data = path.read_bytes()
    if not data.startswith(SIGNATURE):
        return None
    at = len(SIGNATURE)
    while at + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if kind == b"tEXt" and body.split(b"\0", 1)[0] == key.encode():
            return body.split(b"\0", 1)[1].decode("latin-1")
        at += 12 + length
    return None
