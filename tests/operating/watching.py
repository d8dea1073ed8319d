# SPDX-License-Identifier: Apache-2.0
"""What tests of watchers share: a connection that watches, and a client that gives it much to read."""

from __future__ import annotations

import re
import socket

from harness.exchange import ask, begin_watch, receive_until

START = re.compile(rb"ts=\d+\.\d+ gid=(\d+) (.*)\n")


def flood(client: socket.socket, commands: int = 500) -> None:
    """Sends gets of nine long keys, and waits for their replies."""
    keys = b" ".join(b"%0200d" % i for i in range(9))
    client.sendall((b"get " + keys + b"\r\n") * commands + b"mn\r\n")
    receive_until(client, b"MN\r\n")


class Watcher:
    """A connection that watches, and reads line by line."""

    def __init__(self, server, kinds: str = "") -> None:
        self.sock = server.connect()
        begin_watch(self.sock, kinds)
        self.unread = b""

    def line(self) -> bytes:
        while b"\n" not in self.unread:
            data = self.sock.recv(65536)
            assert data, "the server has closed the watcher"
            self.unread += data
        line, self.unread = self.unread.split(b"\n", 1)
        return line + b"\n"

    def event(self) -> str:
        """The next line without time and number."""
        line = self.line()
        match = START.fullmatch(line)
        assert match, line
        return match[2].decode()

    def event_of(self, port: int) -> str:
        """The next one of the client's connection from this port."""
        while f" rport={port} " not in (event := self.event()):
            pass
        return event

    def close(self) -> None:
        self.sock.close()


def descriptor(server, sock: socket.socket) -> str:
    """The server's descriptor of a connection, by the client's port."""
    port = sock.getsockname()[1]
    text = ask(sock, b"stats conns\r\n", b"END\r\n").decode()
    return re.search(rf"STAT (\d+):addr tcp:127\.0\.0\.1:{port}\r", text)[1]
