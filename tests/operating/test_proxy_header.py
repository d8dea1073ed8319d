# SPDX-License-Identifier: Apache-2.0
"""-l proxy:ADDRESS: a proxy in front says who the client is (PROXY protocol, version 2), before TLS too."""

from __future__ import annotations

import socket
import ssl
import struct

import pytest
from faults.conftest import start_server, target  # noqa: F401
from faults.support import eventually
from harness.exchange import ask, ask_stats, receive_all, receive_until
from harness.servers import free_port

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY = 0x20, 0x21
TCP4, TCP6 = 0x11, 0x21


def header(command: int, family: int, addresses: bytes) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(addresses)) + addresses


def from_ipv4(host: str, port: int, more: bytes = b"") -> bytes:
    return header(PROXY, TCP4, socket.inet_aton(host) + socket.inet_aton("192.0.2.1") + struct.pack("!HH", port, 11211) + more)


def from_ipv6(host: str, port: int) -> bytes:
    pack = socket.inet_pton
    return header(PROXY, TCP6, pack(socket.AF_INET6, host) + pack(socket.AF_INET6, "::1") + struct.pack("!HH", port, 11211))


@pytest.fixture
def server(start_server):  # noqa: F811
    proxied = free_port()
    made = start_server("-t", "2", "-l", f"proxy:127.0.0.1:{proxied}")
    made.proxied = proxied
    return made


def connect(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.proxied), 60)


def addresses(server) -> set[str]:
    with server.connect() as sock:
        shown = ask_stats(sock, "conns")
    return {value for name, value in shown.items() if name.endswith(":addr")}


@pytest.mark.parametrize(
    ("first", "address"),
    [
        (from_ipv4("198.51.100.7", 4711), "tcp:198.51.100.7:4711"),
        (from_ipv4("198.51.100.8", 65535, b"\x03\0\4abcd" + bytes(300)), "tcp:198.51.100.8:65535"),
        (from_ipv6("2001:db8::5", 80), "tcp6:[2001:db8::5]:80"),
    ],
)
def test_the_client_is_the_one_of_the_header(server, first, address):
    with connect(server) as sock:
        assert ask(sock, first + b"set key 0 0 1\r\nx\r\n") == b"STORED\r\n"
        assert ask(sock, b"get key\r\n", b"END\r\n") == b"VALUE key 0 1\r\nx\r\nEND\r\n"
        assert address in addresses(server)


@pytest.mark.parametrize("first", [header(LOCAL, 0, b""), header(LOCAL, TCP4, bytes(12)), header(PROXY, 0, bytes(5))])
def test_a_proxy_that_speaks_for_itself(server, first):
    with connect(server) as sock:
        assert ask(sock, first + b"mn\r\n") == b"MN\r\n"
        assert f"tcp:127.0.0.1:{sock.getsockname()[1]}" in addresses(server)


def test_in_single_bytes(server):
    with connect(server) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in from_ipv4("198.51.100.7", 1) + b"mn\r\n":
            sock.sendall(bytes([byte]))
        assert receive_until(sock, b"\r\n") == b"MN\r\n"


@pytest.mark.parametrize(
    "first",
    [
        b"mn\r\n" * 10,
        b"PROXY TCP4 198.51.100.7 192.0.2.1 4711 11211\r\n",
        header(0x31, TCP4, bytes(12)),
        header(PROXY, TCP4, bytes(11)),
        header(PROXY, TCP6, bytes(35)),
        SIGNATURE + struct.pack("!BBH", PROXY, TCP4, 65535) + bytes(100),
    ],
)
def test_what_is_no_header_is_refused(server, first):
    with connect(server) as sock:
        sock.sendall(first)
        assert receive_all(sock) == b""
    with server.connect() as sock:
        assert eventually(lambda: ask_stats(sock)["proxy_headers_refused"] == "1")


def test_watchers_see_the_client(server):
    with server.connect() as watcher:
        assert ask(watcher, b"watch connevents\r\n") == b"OK\r\n"
        with connect(server) as sock:
            assert ask(sock, from_ipv4("198.51.100.7", 4711) + b"mn\r\n") == b"MN\r\n"
        lines = b""
        while lines.count(b"rip=198.51.100.7 rport=4711") < 2:  # opened and closed
            lines += receive_until(watcher, b"\n")
        assert b"type=conn_new" in lines and b"type=conn_close" in lines


def test_silent_clients_hold_nobody_up(server):
    silent = [connect(server) for _ in range(20)]
    with connect(server) as sock, server.connect() as plain:
        assert ask(sock, from_ipv4("198.51.100.7", 1) + b"mn\r\n") == b"MN\r\n"
        assert ask(plain, b"mn\r\n") == b"MN\r\n"
    for one in silent:
        one.close()


def test_before_tls(tls):
    port, plain = free_port(), free_port()
    server = tls.start("-l", f"proxy:127.0.0.1:{port}", "-l", f"proxy:notls:127.0.0.1:{plain}")
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        # The proxy sends its header alone, or with the client's first bytes.
        sock.sendall(from_ipv4("198.51.100.7", 4711))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(sock) as wrapped:
            assert ask(wrapped, b"mn\r\n") == b"MN\r\n"
            shown = ask(wrapped, b"stats conns\r\n", b"END\r\n")
            assert b"addr tcp:198.51.100.7:4711\r\n" in shown
    with socket.create_connection(("127.0.0.1", plain), 60) as sock:
        assert ask(sock, from_ipv6("2001:db8::5", 80) + b"mn\r\n") == b"MN\r\n"
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.sendall(b"mn\r\n" * 10)
        assert receive_all(sock) == b""
    del server
