# SPDX-License-Identifier: Apache-2.0
"""A server with a NIC cache on one end of a veth pair, and what its clients say."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

import pytest
from harness.exchange import ask, ask_stats
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.servers import ServerError, start_server
from harness.veth import HOST, HOST6, NEAR, Link

COPY_ID = 0xFFFF  # of the requests of NicServer.copy()
COPY_TIMEOUT_S = 2


class NicServer:
    """A server whose NIC cache is on the near end."""

    def __init__(self, link: Link, mode: str, *options: str, allow: tuple[str, ...] = ("10.8.0.0/24", "fd08::/64")):
        target = require_target("warpcached")
        self.link = link
        # start_server() listens at loopback; so that UDP is served at the pair too, it has another -l.
        try:
            self.server = start_server(
                target,
                (
                    *("-l", f"{HOST},[{HOST6}]", "-U", "11311", "-t", "2", "-o", "no_maxconns_fast"),
                    f"--nic-cache={NEAR},{mode}",
                    "--nic-cache-memory=2",
                    *(f"--udp-allow={network}" for network in allow),
                    *options,
                ),
            )
        except ServerError as error:
            if "built without the NIC cache" in str(error) or "needs the capabilit" in str(error):
                pytest.skip(str(error).splitlines()[-1])
            raise
        self.sock = self.server.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
        if self.server.alive():
            assert self.server.stop() == 0, self.server.log()

    def udp(self, host: str = HOST) -> socket.socket:
        return self.link.udp(host, 11311)

    def tell(self, text: bytes, end: bytes = b"\r\n") -> bytes:
        return ask(self.sock, text, end)

    def copy(self, udp: socket.socket, key: bytes) -> int:
        """Asks for a key until the program answers. Returns the hits so far. A datagram may be lost: it asks again."""
        hits, deadline = self.count("hits"), time.monotonic() + PATIENCE_S
        udp.settimeout(COPY_TIMEOUT_S)
        while self.count("hits") == hits:
            assert time.monotonic() < deadline, self.stats()
            udp.send(request(b"get " + key + b"\r\n", COPY_ID))
            with contextlib.suppress(TimeoutError):
                udp.recv(65536)
        udp.settimeout(PATIENCE_S)
        return self.count("hits")

    def stats(self) -> dict[str, int | str]:
        found = ask_stats(self.sock, "nic")
        return {k: int(v) if v.isdigit() else v for k, v in found.items()}

    def count(self, name: str) -> int:
        return sum(v for k, v in self.stats().items() if k.startswith("queue") and k.endswith("_" + name))

    def wait_for(self, name: str, value: int) -> None:
        """Waits until a statistic is at least `value`."""
        deadline = time.monotonic() + PATIENCE_S
        while self.stats()[name] < value:
            assert time.monotonic() < deadline, self.stats()
            time.sleep(0.005)

    def wait_until(self, name: str, value: int) -> None:
        """Waits until a statistic is `value`."""
        deadline = time.monotonic() + PATIENCE_S
        while self.stats()[name] != value:
            assert time.monotonic() < deadline, self.stats()
            time.sleep(0.005)


def request(text: bytes, request_id: int = 1) -> bytes:
    return struct.pack(">HHHH", request_id, 0, 1, 0) + text


def say(sock: socket.socket, text: bytes, request_id: int = 1) -> bytes:
    """The reply to a datagram, of one datagram."""
    sock.send(request(text, request_id))
    data = sock.recv(65536)
    while data[:2] == struct.pack(">H", COPY_ID):  # one that copy() has not waited for
        data = sock.recv(65536)
    assert struct.unpack(">HHHH", data[:8]) == (request_id, 0, 1, 0)
    return data[8:]


