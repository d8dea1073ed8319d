# SPDX-License-Identifier: Apache-2.0
"""A connection of a well-behaved client, which checks every byte of its replies."""

from __future__ import annotations

import socket
from typing import NamedTuple

from harness.binary import HEADER, HEADER_SIZE, MAGIC_RESPONSE

from soak.shared import PATIENCE_S

LINE_MAX = 4096


class Wrong(Exception):
    """The server made an error."""


class Hit(NamedTuple):
    value: bytes
    flags: int
    cas: int


class Channel:
    def __init__(self, port: int):
        self.sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")

    def close(self) -> None:
        self.file.close()
        self.sock.close()

    def send(self, request: bytes) -> None:
        self.sock.sendall(request)

    def line(self) -> bytes:
        line = self.file.readline(LINE_MAX)
        if not line.endswith(b"\r\n"):
            raise Wrong(f"no line but {line!r}")
        return line[:-2]

    def exactly(self, size: int) -> bytes:
        data = self.file.read(size)
        if len(data) != size:
            raise Wrong(f"{len(data)} of {size} bytes, then the end")
        return data

    def _body(self, size: int) -> bytes:
        value = self.exactly(size + 2)
        if not value.endswith(b"\r\n"):
            raise Wrong(f"a value of {size} bytes ends with {value[-20:]!r}")
        return value[:-2]

    def text_get(self, key: bytes) -> Hit | None:
        """The reply to `get`, `gets` or `gat` of one key."""
        words = self.line().split(b" ")
        if words == [b"END"]:
            return None
        if words[:2] != [b"VALUE", key] or not 4 <= len(words) <= 5:
            raise Wrong(f"{words[:6]} for a get of {key!r}")
        hit = Hit(self._body(int(words[3])), int(words[2]), int(words[4]) if words[4:] else 0)
        if (end := self.line()) != b"END":
            raise Wrong(f"{end!r} after a value")
        return hit

    def meta_get(self) -> Hit | None:
        """The reply to `mg KEY v f c`."""
        words = self.line().split(b" ")
        if words == [b"EN"]:
            return None
        if words[0] != b"VA" or len(words) != 4 or words[2][:1] + words[3][:1] != b"fc":
            raise Wrong(f"{words[:8]} for mg")
        return Hit(self._body(int(words[1])), int(words[2][1:]), int(words[3][1:]))

    def packet(self) -> tuple[int, int, int, bytes, bytes]:
        """Opcode, status, cas, extras, key and value together."""
        header = HEADER.unpack(self.exactly(HEADER_SIZE))
        magic, opcode, _, extras_size, _, status, size, _, cas = header
        if magic != MAGIC_RESPONSE or extras_size > size:
            raise Wrong(f"packet header {header}")
        body = self.exactly(size)
        return opcode, status, cas, body[:extras_size], body[extras_size:]
