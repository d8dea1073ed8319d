# SPDX-License-Identifier: Apache-2.0
"""Shared by the attacks: access to the server, sockets that stay open, and reading of replies."""

from __future__ import annotations

import os
import re
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testing"))

from harness import exchange
from harness.servers import Server

CONNECT_S_MAX = 20.0
ANSWERED = b"MN\r\n"  # the reply to the `mn` after the requests
UDP_HEADER = struct.Struct(">HHHH")


@dataclass
class Attack:
    """One attack: its limits and its results. Sockets stay open until close()."""

    server: Server
    seconds: float  # no longer than this
    items: int
    socks: list[socket.socket] = field(default_factory=list)
    processes: list = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    answer_s: float | None = None  # None: not answered in time, or nobody reads it

    def connect(self, receive_bytes: int = 0) -> socket.socket:
        """A socket with a small receive buffer, so that the kernel buffers little of an unread reply."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(CONNECT_S_MAX)
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.connect((self.server.host, self.server.port))
        self.socks.append(sock)
        return sock

    def say(self, sock: socket.socket, request: bytes) -> bool:
        """Sends as much as the server takes without a long wait. Returns whether it took all."""
        deadline = time.monotonic() + 1.0
        sock.setblocking(False)
        sent = 0
        while sent < len(request) and time.monotonic() < deadline:
            try:
                sent += sock.send(request[sent:])
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:
                return False
        return sent == len(request)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for sock in self.socks:
            sock.close()
        self.socks.clear()


def ask(sock: socket.socket, request: bytes, end: bytes) -> bytes:
    """Also works with a non-blocking socket."""
    sock.settimeout(CONNECT_S_MAX)
    return exchange.ask(sock, request, end)


def stats(attack: Attack, deadline_s: float = 10.0) -> dict[str, str]:
    with socket.create_connection((attack.server.host, attack.server.port), deadline_s) as sock:
        return exchange.ask_stats(sock)


class Reader:
    """Reads from all sockets until each has sent the reply to `mn`, or until the time limit."""

    def __init__(self, attack: Attack, socks: list[socket.socket]) -> None:
        self.attack = attack
        self.tails = {sock: b"" for sock in socks}
        self.waiting = set(socks)
        self.bytes = self.ends = self.busy = self.errors = self.closed = 0

    def run(self) -> None:
        started = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for sock in self.tails:
                sock.setblocking(False)
                selector.register(sock, selectors.EVENT_READ)
            while self.waiting and time.monotonic() - started < self.attack.seconds:
                for key, _ in selector.select(0.1):
                    self._take(key.fileobj)
                    if key.fileobj not in self.waiting:
                        selector.unregister(key.fileobj)
        if not self.waiting and self.closed == 0:
            self.attack.answer_s = round(time.monotonic() - started, 3)
        self.attack.facts.update(
            reply_mib=round(self.bytes / (1 << 20), 1),
            replies_whole=self.ends,
            replies_busy=self.busy,
            replies_error=self.errors,
            closed=self.closed,
        )

    def _take(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.closed += 1
            self.waiting.discard(sock)
            return
        self.bytes += len(data)
        self._count(self.tails[sock], data)
        self.tails[sock] = (self.tails[sock] + data)[-16:] if len(data) < 16 else data[-16:]
        if self.tails[sock].endswith(ANSWERED):
            self.waiting.discard(sock)

    def _count(self, tail: bytes, data: bytes) -> None:
        def count(word: bytes) -> int:
            before = tail[-(len(word) - 1) :]
            return (before + data).count(word)

        self.ends += count(b"\nEND\r\n") + (not tail and data.startswith(b"END\r\n"))
        self.busy += count(b"BUSY ")
        self.errors += count(b"ERROR")


def read_all(attack: Attack, socks: list[socket.socket]) -> None:
    Reader(attack, socks).run()


def ask_datagram(attack: Attack, request: bytes) -> None:
    """One datagram, then `mn` in others until one is answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((attack.server.host, attack.server.port))
        sock.settimeout(0.2)
        started = time.monotonic()
        sock.send(UDP_HEADER.pack(1, 0, 1, 0) + request)
        number, received = 1, 0
        while time.monotonic() - started < attack.seconds:
            number += 1
            sock.send(UDP_HEADER.pack(number, 0, 1, 0) + b"mn\r\n")
            try:
                while True:
                    data = sock.recv(65536)
                    received += len(data)
                    if data[8:] == ANSWERED:
                        attack.answer_s = round(time.monotonic() - started, 3)
                        attack.facts["reply_mib"] = round(received / (1 << 20), 1)
                        return
            except OSError:
                continue


def for_seconds(attack: Attack, act: Callable[[], None]) -> int:
    """Repeats an action until the time limit; returns how often."""
    finish = time.monotonic() + attack.seconds
    count = 0
    while time.monotonic() < finish:
        act()
        count += 1
    return count


def refused(reply: bytes) -> bool:
    return re.search(rb"ERROR|BUSY", reply) is not None
