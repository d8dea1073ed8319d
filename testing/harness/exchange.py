# SPDX-License-Identifier: Apache-2.0
"""Requests and replies over a connected socket, for tests and for benchmarks in Python: blocking, in bytes."""

from __future__ import annotations

import socket


def receive_until(sock: socket.socket, end: bytes) -> bytes:
    received = bytearray()
    while not received.endswith(end):
        data = sock.recv(1 << 20)
        if not data:
            raise ConnectionError(f"closed after {bytes(received[-200:])!r}")
        received += data
    return bytes(received)


def receive_exactly(sock: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        data = sock.recv(min(1 << 20, size - len(received)))
        if not data:
            raise ConnectionError(f"closed after {len(received)} of {size} bytes")
        received += data
    return bytes(received)


def receive_all(sock: socket.socket) -> bytes:
    """All bytes until the peer closes or resets the connection."""
    received = bytearray()
    try:
        while data := sock.recv(1 << 20):
            received += data
    except ConnectionResetError:
        pass
    return bytes(received)


def ask(sock: socket.socket, request: bytes, end: bytes = b"\r\n") -> bytes:
    sock.sendall(request)
    return receive_until(sock, end)


def begin_watch(sock: socket.socket, kinds: str = "") -> None:
    """Makes the connection a watcher. Lines may follow the answer at once, and stay unread."""
    sock.sendall(f"watch {kinds}".strip().encode() + b"\r\n")
    answer = receive_exactly(sock, 4)
    if answer != b"OK\r\n":
        raise ValueError(f"watch: {answer + sock.recv(1000)!r}")


def ask_stats(sock: socket.socket, kind: str = "") -> dict[str, str]:
    """The values of a statistic, by name. Raises ValueError if the reply is an error."""
    reply = ask(sock, f"stats {kind}".strip().encode() + b"\r\n")
    if not reply.startswith((b"STAT ", b"END\r\n")):
        raise ValueError(f"stats {kind}: {reply!r}")
    if not reply.endswith(b"END\r\n"):
        reply += receive_until(sock, b"END\r\n")
    text = reply.decode()
    lines = text.splitlines()
    return dict(line.split(" ", 2)[1:] for line in lines if line.startswith("STAT "))
