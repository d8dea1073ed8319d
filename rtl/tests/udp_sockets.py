# SPDX-License-Identifier: Apache-2.0
"""pymemcache over UDP."""

from __future__ import annotations

import socket
import struct


class UdpSocket:
    """For pymemcache: sends each request in a datagram, and gives the bytes of its reply's datagrams.

    memcached sends the items of a get of several keys in messages of their own; for one that it has not, there may be a
    datagram with nothing in it, the first of none.
    """

    def __init__(self, family: int, _kind: int, _protocol: int):
        self.sock = socket.socket(family, socket.SOCK_DGRAM)
        self.number = 0
        self.replies: list[bytes] = []

    def setsockopt(self, *_) -> None:
        pass  # of TCP

    def sendall(self, request: bytes) -> None:
        self.number = (self.number + 1) % 65536
        self.sock.send(struct.pack(">HHHH", self.number, 0, 1, 0) + request)

    def recv(self, _size: int) -> bytes:
        parts: dict[int, bytes] = {}
        count = 1
        while len(parts) < count:
            data = self.sock.recv(65536)
            number, part, of, _ = struct.unpack(">HHHH", data[:8])
            assert number == self.number
            if of != 0:
                count = of
                parts[part] = data[8:]
        return b"".join(parts[part] for part in range(count))

    def __getattr__(self, name: str):
        return getattr(self.sock, name)


class UdpSockets:
    """The module of sockets that pymemcache is given."""

    socket = UdpSocket

    def __getattr__(self, name: str):
        return getattr(socket, name)
