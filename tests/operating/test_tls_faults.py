# SPDX-License-Identifier: Apache-2.0
"""Clients of a TLS port that stall, break the protocol, vanish or flood: the others notice nothing."""

from __future__ import annotations

import random
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest
from faults.support import eventually
from harness.exchange import ask, ask_stats, begin_watch, receive_all, receive_exactly
from harness.patience import PATIENCE_S
from harness.servers import Server

from operating.tls_servers import VERSIONS, errors, other_ports, works

HANDSHAKE_LIMIT_S = 10


def connections(sock: socket.socket) -> int:
    return int(ask_stats(sock)["curr_connections"])


@pytest.mark.long
def test_stalled_handshakes_end(tls):
    """A client that says nothing, and one that says half a greeting, are closed after their time."""
    server = tls.start()
    began = time.monotonic()
    with tls.connect(server) as other, server.connect() as silent, server.connect() as half:
        half.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert eventually(lambda: connections(other) == 3)
        for _ in range(50):
            assert works(other)
        with tls.connect(server) as late:
            assert works(late)
        assert receive_all(silent) == b"" and receive_all(half) == b""
        assert time.monotonic() - began > HANDSHAKE_LIMIT_S - 1  # not before the limit
        assert eventually(lambda: connections(other) == 1)
        assert int(ask_stats(other)["ssl_handshakes_closed"]) == 2


def test_watchers_are_told_why_a_handshake_failed(tls):
    """In memcached's form: the connection, OpenSSL's words, its end."""
    server = tls.start()
    with tls.connect(server) as watcher, server.connect() as plain:
        begin_watch(watcher, "connevents")
        client = rf"rip=127\.0\.0\.1 rport={plain.getsockname()[1]} transport=tcp"
        plain.sendall(b"get a\r\n")
        text = b""
        while text.count(b"\n") < 3:
            assert (data := watcher.recv(65536))
            text += data
        lines = [re.sub(r"^ts=\d+\.\d+ gid=\d+ ", "", line) for line in text.decode().splitlines()]
        fd = re.fullmatch(rf"type=conn_new {client} cfd=(\d+)", lines[0])[1]
        assert re.fullmatch(rf"type=conntlserr fd={fd} msg=error:.+", lines[1])
        assert re.fullmatch(rf"type=conn_close {client} reason=error cfd={fd}", lines[2])


def test_more_stalled_handshakes_than_there_is_room_for(tls):
    """Those that have waited for the longest are closed, and new clients come in at once."""
    server = tls.start("-c", "4000")
    with tls.connect(server) as other:
        silent = [server.connect() for _ in range(700)]
        assert eventually(lambda: int(ask_stats(other)["ssl_handshakes_closed"]) >= 188)
        for _ in range(10):
            with tls.connect(server) as late:
                assert works(late)
        assert works(other)
        for sock in silent:
            sock.close()
        assert eventually(lambda: connections(other) == 1)


def test_plain_text_to_a_tls_port(tls):
    server = tls.start()
    with tls.connect(server) as other:
        before, _ = errors(other)
        for text in (b"version\r\n", b"get a\r\n" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"\x80\x01" + bytes(22)):
            with server.connect() as sock:
                sock.sendall(text)
                assert b"VERSION" not in receive_all(sock)
            assert works(other)
        assert eventually(lambda: errors(other) == (before + 4, 0))


def test_tls_to_a_plain_port(tls):
    (plain,) = other_ports(1)
    server = tls.start("-l", f"notls:127.0.0.1:{plain}")
    with tls.connect(server) as other:
        before = errors(other)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            tls.connect(server, plain)
        assert works(other)
        assert errors(other) == before
    with socket.create_connection((server.host, plain), PATIENCE_S) as sock:
        assert works(sock)


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_that_are_no_tls_after_the_handshake(tls, version):
    server = tls.start()
    with tls.connect(server) as other:
        before = errors(other)
        with tls.connect(server, version=version) as sock:
            assert works(sock)
            with socket.socket(fileno=sock.detach()) as raw:
                raw.settimeout(PATIENCE_S)
                raw.sendall(b"version\r\nversion\r\n")
                assert b"VERSION" not in receive_all(raw)
        assert eventually(lambda: errors(other) == (before[0], before[1] + 1))
        assert works(other)


@pytest.mark.parametrize(("version", "letter"), [("-tls1_2", "R"), ("-tls1_3", "K")])
def test_a_client_that_renegotiates(tls, version, letter):
    """TLS 1.2: the server refuses. TLS 1.3 has new keys instead, which it takes and gives."""
    server = tls.start()
    with tls.connect(server) as other:
        client = subprocess.Popen(
            ["openssl", "s_client", version, "-connect", f"127.0.0.1:{server.port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

        hurry = threading.Timer(PATIENCE_S, client.kill)
        hurry.start()

        def say(line: str, expected: str) -> None:
            client.stdin.write(f"{line}\n")
            client.stdin.flush()
            while expected not in (read := client.stdout.readline()):
                assert read, f"the client has ended before {expected}"

        try:
            say("version", "VERSION")
            if letter == "R":
                say("R", "no renegotiation")
            else:
                say("K", "KEYUPDATE")
                say("version", "VERSION")
        finally:
            hurry.cancel()
            client.kill()
            client.communicate()
        assert works(other)


def test_clients_that_vanish(tls):
    """At any time of a handshake or a request."""
    server = tls.start()
    rng = random.Random(3)
    with tls.connect(server) as other:
        hello = record_of_a_greeting(tls)
        for _ in range(60):
            sock = server.connect()
            if rng.random() < 0.5:
                sock.sendall(hello[: rng.randrange(1, len(hello) + 1)])
            else:
                sock = tls.certificates.client().wrap_socket(sock, server_hostname="localhost")
                sock.sendall(rng.choice((b"set k 0 0 90000\r\nabc", b"get k\r\n" * 500, b"ge")))
            if rng.random() < 0.5:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
        assert eventually(lambda: connections(other) == 1)
        assert works(other)


def record_of_a_greeting(tls) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.certificates.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_mutated_handshakes(tls):
    """A greeting with wrong bytes, again and again."""
    server = tls.start()
    rng = random.Random(5)
    hello = record_of_a_greeting(tls)
    with tls.connect(server) as other:
        for _ in range(150):
            mutated = bytearray(hello)
            for _ in range(rng.randrange(1, 6)):
                mutated[rng.randrange(len(mutated))] = rng.randrange(256)
            with server.connect() as sock:
                sock.sendall(mutated)
                sock.shutdown(socket.SHUT_WR)
                receive_all(sock)
        assert works(other)
        assert eventually(lambda: connections(other) == 1)


def test_a_client_that_does_not_read(tls):
    server = tls.start("-t", "1")
    with tls.connect(server) as other, tls.connect(server) as slow:
        value = b"v" * 500_000
        assert ask(slow, b"set k 0 0 500000\r\n" + value + b"\r\n") == b"STORED\r\n"
        slow.sendall(b"get k\r\n" * 60 + b"mn\r\n")
        for _ in range(200):
            assert works(other)
        reply = b"VALUE k 0 500000\r\n" + value + b"\r\nEND\r\n"
        for _ in range(60):
            assert receive_exactly(slow, len(reply)) == reply
        assert receive_exactly(slow, 4) == b"MN\r\n"


def test_an_end_while_handshakes_are_under_way(tls):
    server = tls.start()
    silent = [server.connect() for _ in range(20)]
    with tls.connect(server) as sock:
        assert works(sock)
        server.ask_to_stop()
        assert server.wait_exit() == 0
    for sock in silent:
        sock.close()


def test_a_graceful_end(tls):
    """What was asked is answered, and the end is TLS's own, so that clients can tell it from an attack."""
    server = tls.start("-A", "-t", "1")
    with tls.connect(server) as sock, tls.connect(server) as other:
        value = b"v" * 900_000
        assert ask(sock, b"set k 0 0 900000\r\n" + value + b"\r\n") == b"STORED\r\n"
        sock.sendall(b"get k\r\n" * 5)
        assert receive_exactly(sock, 1) == b"V"
        other.sendall(b"shutdown graceful\r\n")
        whole = 5 * len(b"VALUE k 0 900000\r\n" + value + b"\r\nEND\r\n") - 1
        assert len(receive_exactly(sock, whole)) == whole
        assert sock.recv(1) == b""
        assert server.wait_exit() == 0


def flood(server: Server, stop: threading.Event) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while not stop.is_set():
        try:
            with context.wrap_socket(server.connect()):
                pass
        except OSError:
            pass


def test_a_flood_of_handshakes(tls):
    """Established clients are answered by threads that make no handshake."""
    server = tls.start("-t", "1")
    stop = threading.Event()
    with tls.connect(server) as other:
        floods = [threading.Thread(target=flood, args=(server, stop)) for _ in range(4)]
        for thread in floods:
            thread.start()
        try:
            for _ in range(300):
                assert works(other)
        finally:
            stop.set()
            for thread in floods:
                thread.join()
        assert eventually(lambda: connections(other) == 1)
