# SPDX-License-Identifier: Apache-2.0
"""Servers with TLS and their clients, for the tests of this folder."""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from faults.support import eventually
from harness.certificates import Certificates
from harness.exchange import ask, ask_stats
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.servers import Server, free_port, start_server

VERSIONS = ("1.2", "1.3")


def require_tls() -> None:
    """Skips the test where the server is built without TLS."""
    # The simulated GPU's program starts the one that this variable names.
    program = os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)
    if not Path(program).with_name("warpcached-tls.so").exists():
        pytest.skip("the server is built without TLS")


def tls_options(cert: tuple[Path, Path], *words: str) -> list[str]:
    return ["-Z", "-o", ",".join([f"ssl_chain_cert={cert[0]}", f"ssl_key={cert[1]}", *words])]


class TlsServers:
    """Starts servers with TLS; ends them, with status 0, when the test ends."""

    def __init__(self, certificates: Certificates) -> None:
        self.certificates = certificates
        self.cert = certificates.sign("server")
        self.running: list[Server] = []

    def start(self, *options: str, words: tuple[str, ...] = (), **how) -> Server:
        command = [*tls_options(self.cert, *words), "-t", "2", *options]
        self.running.append(start_server(require_target("warpcached"), command, **how))
        return self.running[-1]

    def connect(self, server: Server, port: int | None = None, **how) -> ssl.SSLSocket:
        """A client of the server, or of another of its ports; how: see Certificates.client()."""
        sock = socket.create_connection((server.host, port or server.port), PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self.certificates.client(**how).wrap_socket(sock, server_hostname="localhost")
        except BaseException:
            sock.close()
            raise

    def stats(self, server: Server, kind: str = "") -> dict[str, str]:
        with self.connect(server) as sock:
            return ask_stats(sock, kind)

    def check_and_stop(self) -> None:
        statuses = []
        for server in self.running:
            log = server.log()
            for word in ("Sanitizer", "runtime error:", "assertion"):
                assert word not in log, log[-8000:]
            statuses.append(server.stop())
        assert statuses == [0] * len(statuses)


def errors(sock: socket.socket) -> tuple[int, int]:
    """Failed handshakes, and streams that were closed after one.

    The first is start_server()'s, which connects and says nothing.
    """
    assert eventually(lambda: ask_stats(sock)["ssl_handshake_errors"] != "0")
    stats = ask_stats(sock)
    return int(stats["ssl_handshake_errors"]), int(stats["ssl_proto_errors"])


def works(sock: socket.socket) -> bool:
    return ask(sock, b"mn\r\n") == b"MN\r\n"


def exchange(sock: ssl.SSLSocket, pieces: Iterable[bytes], size: int) -> bytes:
    """Sends each piece as records of its own and receives `size` bytes meanwhile.

    By one thread, since two may not use an SSLSocket at the same time.
    """
    received = bytearray()
    unsent = deque(pieces)
    sock.setblocking(False)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while (unsent or len(received) < size) and time.monotonic() < deadline:
            moved = False
            with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if unsent:
                    sent = sock.send(unsent[0])  # at the same address again, where it wants to write
                    unsent[0] = unsent[0][sent:]
                    if not unsent[0]:
                        unsent.popleft()
                    moved = True
            with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                part = sock.recv(1 << 16)
                if not part:
                    raise ConnectionError(f"closed after {len(received)} of {size} bytes")
                received += part
                moved = True
            if not moved:
                select.select([sock], [sock] if unsent else [], [], 1)
    finally:
        sock.settimeout(PATIENCE_S)
    assert len(received) == size
    return bytes(received)


def other_ports(count: int) -> list[int]:
    return [free_port() for _ in range(count)]
