# SPDX-License-Identifier: Apache-2.0
"""A connection to a memcached server, for the programs beside the server."""

from __future__ import annotations

import argparse
import socket
import ssl
import sys

DEFAULT_PORT = 11211
TIMEOUT_S = 30.0


class ServerError(Exception):
    """The server said no, or something that no memcached server says."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", default="127.0.0.1", help="host, host:port, [ipv6]:port or /path of a Unix socket")
    parser.add_argument("--tls", action="store_true", help="with TLS; the server's certificate is checked")
    parser.add_argument("--tls-ca", metavar="FILE", help="with TLS, and certificates of these authorities")
    parser.add_argument("--user", metavar="NAME", help="log in (-Y); the password is read from the terminal or standard input")


def host_and_port(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, ""
    if port and not port.isdecimal():
        raise ServerError(f"{text} is no address of a server")
    return host, int(port or DEFAULT_PORT)


class Connection:
    """Sends bytes, receives lines and blocks of bytes."""

    def __init__(self, server: str, tls: bool = False, tls_ca: str | None = None) -> None:
        if server.startswith("/"):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(TIMEOUT_S)
            self._socket.connect(server)
        else:
            host, port = host_and_port(server)
            self._socket = socket.create_connection((host, port), TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls or tls_ca:
                context = ssl.create_default_context(cafile=tls_ca)
                self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._file = self._socket.makefile("rb", buffering=1 << 20)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def line(self) -> bytes:
        """The next line, without its end."""
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise ServerError("the server has closed the connection")
        return line.rstrip(b"\r\n")

    def block(self, size: int) -> bytes:
        """A value and the line end after it."""
        data = self._file.read(size + 2)
        if len(data) != size + 2:
            raise ServerError("the server has closed the connection")
        return data[:-2]

    def stats(self, what: str = "") -> dict[str, str]:
        """Raises ServerError if the server does not have this statistic."""
        self.send(f"stats {what}".strip().encode() + b"\r\n")
        values = {}
        while (line := self.line()) != b"END":
            words = line.decode(errors="replace").split(" ", 2)
            if words[0] != "STAT" or len(words) < 2:
                raise ServerError(f"stats {what}: {line.decode(errors='replace')}")
            values[words[1]] = words[2] if len(words) == 3 else ""
        return values

    def log_in(self, name: str, password: str) -> None:
        text = f"{name} {password}".encode()
        self.send(b"set login 0 0 %d\r\n%s\r\n" % (len(text), text))
        if (reply := self.line()) != b"STORED":
            raise ServerError(f"the login was refused: {reply.decode(errors='replace')}")

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Opener:
    """Opens connections as the command line says, and asks for a password once."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._password = None

    def open(self) -> Connection:
        connection = Connection(self._arguments.server, self._arguments.tls, self._arguments.tls_ca)
        if self._arguments.user:
            if self._password is None:
                self._password = read_password()
            connection.log_in(self._arguments.user, self._password)
        return connection


def read_password() -> str:
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass()
    return sys.stdin.readline().rstrip("\n")
