# SPDX-License-Identifier: Apache-2.0
"""What the terminator of TCP does to a client's stream."""

import socket
import struct

import pytest


@pytest.fixture
def stream(server):
    with server.connect() as sock:
        yield sock


def ask(sock, request, size):
    sock.sendall(request)
    return receive(sock, size)


def receive(sock, size):
    reply = b""
    while len(reply) < size:
        piece = sock.recv(size - len(reply))
        assert piece, reply
        reply += piece
    return reply


def expect(sock, request, reply):
    """The reply, and nothing after it but that of a noop."""
    assert ask(sock, request + b"mn\r\n", len(reply) + 4) == reply + b"MN\r\n"


def test_requests_in_one_piece_and_byte_by_byte(stream):
    request = b"set a 1 0 3\r\nabc\r\nget a b\r\nset b 0 0 2 noreply\r\n\r\n\r\nincr a 1\r\nget b\r\n\r\ndelete b\r\n"
    reply = (b"STORED\r\nVALUE a 1 3\r\nabc\r\nEND\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
             b"VALUE b 0 2\r\n\r\n\r\nEND\r\nCLIENT_ERROR bad command line format\r\nDELETED\r\n")
    expect(stream, request, reply)
    for byte in request:
        stream.sendall(bytes([byte]))
    expect(stream, b"", reply)


def test_many_keys_and_large_values(stream):
    """More than the core sends in reply to one datagram."""
    keys = [b"key-%d" % number for number in range(50)]
    want = b""
    for key in keys:
        value = key * 150
        expect(stream, b"set %s 7 0 %d\r\n%s\r\n" % (key, len(value), value), b"STORED\r\n")
        want += b"VALUE %s 7 %d\r\n%s\r\n" % (key, len(value), value)
    expect(stream, b"get none " + b" ".join(keys) + b" none\r\n", want + b"END\r\n")
    expect(stream, b"gat 0 " + b" ".join(keys) + b"\r\n", want + b"END\r\n")
    expect(stream, b"get" + b" none" * 5000 + b"\r\n", b"END\r\n")


def test_a_wrong_key_ends_a_get_of_many_keys(stream):
    expect(stream, b"set a 0 0 1\r\nx\r\n", b"STORED\r\n")
    error = b"CLIENT_ERROR bad command line format\r\n"
    for length in (251, 4000):
        request = b"get" + b" a" * 7 + b" " + b"k" * length + b" a" * 20 + b"\r\n"
        expect(stream, request, b"VALUE a 0 1\r\nx\r\n" * 7 + error)


@pytest.mark.parametrize("size", [1537, 3000, 5000, 2000000])
def test_values_that_are_too_large(stream, size):
    value = b"get k\r\n" * (size // 7) + b"x" * (size % 7)
    error = b"SERVER_ERROR object too large for cache\r\n"
    expect(stream, b"set k 0 0 %d\r\n%s\r\nget k\r\n" % (size, value), error + b"END\r\n")
    expect(stream, b"set k 0 0 %d noreply\r\n%s\r\nget k\r\n" % (size, value), b"END\r\n")
    header = struct.pack(">BBHBBHIIQ", 0x80, 1, 1, 8, 0, 0, 9 + size, 77, 0)
    noop = struct.pack(">BBHBBHIIQ", 0x80, 0x0A, 0, 0, 0, 0, 0, 78, 0)
    want = struct.pack(">BBHBBHIIQ", 0x81, 1, 0, 0, 0, 3, 10, 77, 0) + b"Too large."
    want += struct.pack(">BBHBBHIIQ", 0x81, 0x0A, 0, 0, 0, 0, 0, 78, 0)
    assert ask(stream, header + bytes(8) + b"k" + value + noop, len(want)) == want


def test_the_largest_value(stream):
    value = bytes(range(256)) * 6
    key = b"k" * 250
    expect(stream, b"set %s 4294967295 0 1536\r\n%s\r\n" % (key, value), b"STORED\r\n")
    expect(stream, b"get" + b" " + key + b"\r\n", b"VALUE %s 4294967295 1536\r\n%s\r\nEND\r\n" % (key, value))
    item = b"VALUE %s 4294967295 1536\r\n%s\r\n" % (key, value)
    expect(stream, b"get" + b" %s" % key * 20 + b"\r\n", item * 20 + b"END\r\n")


def at_end(sock):
    return sock.recv(1) == b""


@pytest.mark.parametrize("quits, reply", [
    (b"quit\r\n", b""),
    (struct.pack(">BBHBBHIIQ", 0x80, 0x07, 0, 0, 0, 0, 0, 5, 0), struct.pack(">BBHBBHIIQ", 0x81, 0x07, 0, 0, 0, 0, 0, 5, 0)),
    (struct.pack(">BBHBBHIIQ", 0x80, 0x17, 0, 0, 0, 0, 0, 5, 0), b""),
], ids=["text", "binary", "quiet"])
def test_quit(stream, quits, reply):
    assert ask(stream, b"mn\r\n" + quits + b"version\r\n", 4 + len(reply)) == b"MN\r\n" + reply
    assert at_end(stream)


def test_what_was_sent_before_the_end_is_answered(stream):
    stream.sendall(b"get none\r\n" * 3000 + b"get unfinished")
    stream.shutdown(socket.SHUT_WR)
    assert receive(stream, 3000 * 5) == b"END\r\n" * 3000
    assert at_end(stream)


def test_a_line_without_an_end(stream):
    error = b"CLIENT_ERROR line too long\r\n"
    assert ask(stream, b"get" + b" k" * 32768, len(error)) == error
    assert at_end(stream)


def test_two_clients(server, stream):
    with server.connect() as other:
        stream.sendall(b"set a 0 0 5\r\nab")
        expect(other, b"get a\r\n", b"END\r\n")
        expect(stream, b"cde\r\n", b"STORED\r\n")
        expect(other, b"get a\r\n", b"VALUE a 0 5\r\nabcde\r\nEND\r\n")
