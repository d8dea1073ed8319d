# SPDX-License-Identifier: Apache-2.0
"""What bench/tls/run asks of both servers."""

from __future__ import annotations

import random
from dataclasses import dataclass

CONNECTIONS = 50  # as bench/compare; keys and values have its sizes too
KEYS = [b"key-%012d" % i for i in range(10_000)]
VALUE = b"v" * 32
LARGE = b"v" * 200_000


@dataclass(frozen=True)
class Load:
    """What each connection asks again and again."""

    name: str
    kind: str  # get, set, large, or handshake
    requests: int = 1  # at a time
    connections: int = CONNECTIONS
    goal: float | None = None  # of our CPU time over memcached's

    def exchange(self, rng: random.Random) -> tuple[bytes, bytes]:
        """What is sent and what must come back."""
        keys = rng.choices(KEYS, k=self.requests)
        if self.kind == "get":
            return (
                b"".join(b"get %b\r\n" % key for key in keys),
                b"".join(b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key, len(VALUE), VALUE) for key in keys),
            )
        if self.kind == "set":
            return b"".join(map(set_of, keys)), b"STORED\r\n" * self.requests
        return b"get large\r\n", b"VALUE large 0 %d\r\n%b\r\nEND\r\n" % (len(LARGE), LARGE)


LOADS = (
    Load("get, one at a time", "get", goal=0.9),
    Load("get, pipelined 32", "get", 32, goal=0.4),
    Load("set, pipelined 32", "set", 32),
    Load("values of 200 KB", "large", connections=1),
    Load("handshake", "handshake", connections=0),
)


def set_of(key: bytes, value: bytes = VALUE) -> bytes:
    return b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value)
