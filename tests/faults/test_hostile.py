# SPDX-License-Identifier: Apache-2.0
"""Bytes that no honest client sends, and honest ones cut in every way."""

from __future__ import annotations

import random
import re
import select
import socket
import struct
import time

import pytest
from harness.binary import MAGIC_REQUEST
from harness.channels import UDP_HEADER, UDP_MAX_DATAGRAM
from harness.exchange import ask, receive_all, receive_exactly
from harness.patience import PATIENCE_S

from faults.hostile import (
    QUITS,
    drain,
    honest_packet,
    mutated,
    mutated_datagram,
    mutated_line,
    say_and_listen,
)
from faults.support import (
    allowed_mib,
    bystander,
    check_memory,
    eventually,
    packet,
    pattern,
    split_packets,
    store,
    value_reply,
)

# Keys


@pytest.mark.parametrize("size", [1, 249, 250, 251, 255, 256, 1000, 2000])
def test_key_sizes_in_every_protocol(server, size):
    key, good = b"k" * size, size <= 250
    big = pattern(1, 100_000)
    with server.connect(PATIENCE_S) as sock:
        for value in (b"v", big):
            reply = ask(
                sock, b"set %s 0 0 %d\r\n%s\r\nmn\r\n" % (key, len(value), value), b"MN\r\n"
            )
            if good:
                assert reply == b"STORED\r\nMN\r\n"
                expected = value_reply(key, value) + b"END\r\nMN\r\n"
                assert ask(sock, b"get %s\r\nmn\r\n" % key, b"MN\r\n") == expected
                assert ask(sock, b"touch %s 0\r\n" % key) == b"TOUCHED\r\n"
            else:
                assert reply.startswith(b"CLIENT_ERROR"), reply
                assert b"STORED" not in reply
    # Whether what follows a refused line is its body or the next commands, no client may find out
    # by a crash: a connection each.
    for line in (
        b"get %s\r\n",
        b"mg %s v\r\n",
        b"delete %s\r\n",
        b"incr %s 1\r\n",
        b"ms %s 1\r\nx\r\n",
    ):
        reply = say_and_listen(server, line % key)
        assert reply and (good or reply.startswith((b"CLIENT_ERROR", b"ERROR"))), (line, reply)
    replies = split_packets(say_and_listen(server, packet("set", key, b"v", bytes(8), opaque=5)))
    if good:
        assert [(status, opaque) for _, status, opaque, _ in replies] == [(0, 5)]
    else:
        assert all(status != 0 for _, status, _, _ in replies)


def test_keys_of_no_size_and_odd_bytes(server):
    for request in (
        packet("set", b"", b"v", bytes(8)),
        packet("get", b""),
        packet("delete", b""),
        packet("incr", b"", b"", bytes(20)),
        packet("touch", b"", b"", bytes(4)),
    ):
        replies = split_packets(say_and_listen(server, request))
        assert replies and all(status != 0 for _, status, _, _ in replies)
    odd = bytes(range(256))[:250]
    replies = split_packets(
        say_and_listen(server, packet("set", odd, b"v", bytes(8)) + packet("getk", odd))
    )
    assert [status for _, status, _, _ in replies] == [0, 0]
    assert replies[1][3][4:] == odd + b"v"
    for key in (b"a\0b", b"\x01", b"\x7f", b"\xff\xfe", b"a\tb"):
        assert say_and_listen(server, b"get %s\r\n" % key)


# Lengths


LENGTHS = [
    *("-1 -0 -2147483648 2147483647 2147483648 4294967295 4294967296 -4294967296").split(),
    *("9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616").split(),
    *("99999999999999999999999999 0x10 1e3 1.5 +1 ,1 1,000 ١ nan -").split(),
    "0" * 300 + "1",
]


@pytest.mark.parametrize("length", LENGTHS, ids=lambda text: text[:30])
def test_lengths_that_cannot_be(server, length):
    with bystander(server):
        for line in ("set l 0 0 %s", "add l 0 0 %s", "append l 0 0 %s", "cas l 0 0 %s 1"):
            reply = say_and_listen(server, (line % length).encode() + b"\r\nx\r\nmn\r\n")
            assert b"STORED" not in reply.replace(b"NOT_STORED", b"") or length in (
                "-0",
                "+1",
                LENGTHS[-1],
            ), reply
        reply = say_and_listen(server, b"ms l %s\r\nx\r\nmn\r\n" % length.encode())
        assert reply
        for command in ("incr l %s", "touch l %s", "verbosity %s", "flush_all %s noreply"):
            say_and_listen(server, (command % length).encode() + b"\r\n")
        for flags in ("T%s", "D%s", "J%s", "N%s", "R%s", "C%s", "F%s", "M%s", "I%s", "E%s", "O%s"):
            for verb in ("mg l %s v", "ma l %s v", "md l %s", "ms l 1 %s"):
                say_and_listen(server, (verb % (flags % length)).encode() + b"\r\nx\r\n")
    check_memory(server, allowed_mib(64, busy=20))


@pytest.mark.parametrize("said", [0, 1, 9, 11, 100, 50_000, 61_000, 70_000, 1_000_000])
def test_length_that_lies(server, said):
    """Ten bytes come where `said` were announced, or the other way round. Nothing wrong is stored."""
    reply = say_and_listen(server, b"set lie 0 0 %d\r\n0123456789\r\n" % said)
    assert b"STORED" not in reply
    with server.connect(PATIENCE_S) as sock:
        assert ask(sock, b"get lie\r\n") == b"END\r\n"
        body = pattern(3, said + 10)
        sock.sendall(b"set lie 0 0 %d\r\n%s\r\n" % (said, body))
        sock.shutdown(socket.SHUT_WR)
        assert b"STORED" not in receive_all(sock)
    assert say_and_listen(server, b"get lie\r\n") == b"END\r\n"


# Binary packets


@pytest.mark.parametrize("seed", range(4))
def test_malformed_binary_packets(server, seed):
    """Whatever a header says, what comes back is whole binary replies, or the connection ends."""
    chance = random.Random(seed)
    with bystander(server):
        for _ in range(150):
            request = mutated(chance, honest_packet(chance))
            if request[0] != MAGIC_REQUEST:
                assert say_and_listen(server, request) is not None
                continue
            reply = say_and_listen(server, request + packet("noop", opaque=99))
            try:
                packets = split_packets(reply)
            except AssertionError:
                pytest.fail(f"request {request.hex()}\nreply {reply[:200].hex()}")
            # A `stat` that was asked for is many packets; else there is at most one, and the noop's.
            assert len(packets) <= 400, request.hex()
    check_memory(server, allowed_mib(64, busy=20))


def test_every_opcode_with_every_length(server):
    """All opcodes with lengths that fit and do not fit, with and without the body they announce."""
    with bystander(server):
        for opcode in set(range(256)) - QUITS:
            for keylen, extlen in ((0, 0), (5, 0), (5, 4), (5, 8), (5, 20), (0, 4), (5, 255)):
                body = bytes(extlen) + b"a" * keylen + b"12"
                request = packet(opcode, b"", body, keylen=keylen, extlen=extlen, opaque=6)
                replies = split_packets(say_and_listen(server, request + packet("noop", opaque=99)))
                assert replies, request.hex()
                assert {opaque for _, _, opaque, _ in replies} <= {6, 99}, request.hex()
                # In step until the end, or closed with a reason.
                last = replies[-1]
                assert last[2] == 99 or last[1] != 0, request.hex()
        for opcode in range(256):
            for keylen, extlen, bodylen in (
                (5, 8, 4),
                (0xFFFF, 0xFF, 0),
                (0xFFFF, 0, 0xFFFF),
                (251, 8, 300),
                (0, 0, 0xFFFFFFFF),
                (5, 8, 0x80000000),
            ):
                lengths = {"keylen": keylen, "extlen": extlen, "bodylen": bodylen}
                split_packets(say_and_listen(server, packet(opcode, b"", bytes(400), **lengths)))
    check_memory(server, allowed_mib(64, busy=20))


# Lines


@pytest.mark.parametrize("seed", range(4))
def test_malformed_lines(start_server, seed):
    """Mutations of all commands, several to a connection; the server still has all its workers."""
    server = start_server("-m", "64", "-t", "2")
    chance = random.Random(100 + seed)
    with bystander(server):
        for _ in range(250):
            request = b"".join(mutated_line(chance) for _ in range(chance.randint(1, 4)))
            reply = say_and_listen(server, request)
            assert not reply or reply.endswith(b"\n") or b"\x81" in reply, (request, reply)
    check_memory(server, allowed_mib(64, busy=20))


# Datagrams


@pytest.mark.parametrize("seed", range(2))
def test_malformed_datagrams(server, seed):
    """Headers and requests mutated: every answer is framed, and honest clients are answered."""
    chance = random.Random(200 + seed)
    answers = []
    with bystander(server), server.connect_udp() as sock:
        for i in range(600):
            sock.send(mutated_datagram(chance, i))
            if i % 20 == 0:
                answers += drain(sock)
        answers += drain(sock, 0.2)
        for answer in answers:
            _, sequence, total, reserved = UDP_HEADER.unpack_from(answer)
            assert 8 < len(answer) <= UDP_MAX_DATAGRAM and sequence < total and reserved == 0
        assert len(answers) > 100
        assert eventually(lambda: udp_works(sock))
    check_memory(server, allowed_mib(64, busy=20))


def udp_works(sock: socket.socket) -> bool:
    sock.send(UDP_HEADER.pack(0x7777, 0, 1, 0) + b"mn\r\n")
    return any(
        answer == UDP_HEADER.pack(0x7777, 0, 1, 0) + b"MN\r\n" for answer in drain(sock, 0.2)
    )


def test_datagrams_of_every_size(server):
    with bystander(server), server.connect_udp() as sock:
        for size in [*range(20), 1399, 1400, 1401, 1472, 2048, 9000, 65000, 65507]:
            sock.send(bytes(size))
            sock.send((UDP_HEADER.pack(1, 0, 1, 0) + b"get " + b"k " * 40000)[:size])
        drain(sock, 0.1)
        assert eventually(lambda: udp_works(sock))


# Cuts

TEXT = (
    b"set cut 5 0 10\r\n0123456789\r\nget cut none cut\r\nappend cut 0 0 2\r\n\r\n\r\ngets none\r\n"
    b"incr cut 1\r\nset n 0 0 1 noreply\r\n7\r\nincr n 3\r\ntouch n 0\r\nbogus\r\ndelete n\r\n"
    b"cas cut 0 0 1 1\r\nx\r\nverbosity 1\r\nset cut 0 0 -1\r\ngat 0 cut\nget cut\r\n"
)
META = (
    b"ms cut 10 F5\r\n0123456789\r\nmg cut v f s\r\nma n N0 J5 v\r\nma n D1 v\r\nmd n q\r\nmn\r\n"
    b"mg Y3V0 b k v\r\nms cut 2 MA\r\n\r\n\r\nmg cut v O123 k\r\nmg none v\r\nme none\r\nmd cut\r\nmn\r\n"
)
BINARY = b"".join(
    (
        packet("set", b"cut", b"0123456789", struct.pack(">II", 5, 0), opaque=1),
        packet("getk", b"cut", opaque=2),
        packet("getq", b"none", opaque=3),
        packet("incr", b"n", b"", struct.pack(">QQI", 1, 40, 0), opaque=4),
        packet("append", b"cut", b"xy", opaque=5),
        packet("get", b"cut", opaque=6),
        packet(0x77, b"what", b"ever", opaque=7),
        packet("delete", b"n", opaque=9),
        packet("noop", opaque=10),
    )
)
CUTS = {"text": TEXT, "meta": META, "binary": BINARY}


def without_cas(name: str, reply: bytes) -> bytes:
    if name == "binary":
        return b"".join(repr(part).encode() for part in split_packets(reply))
    return re.sub(rb"(VALUE cut \d+ \d+) \d+", rb"\1", reply)


@pytest.mark.parametrize("name", CUTS)
def test_cut_at_every_byte(server, name):
    """A stream in two pieces, cut anywhere, is answered as if it came whole."""
    stream = CUTS[name]
    whole = say_and_listen(server, stream)
    expected = without_cas(name, whole)
    assert len(whole) > 100
    for cut in range(1, len(stream)):
        sock = server.connect(PATIENCE_S)
        sock.sendall(stream[:cut])
        time.sleep(0.002)  # so that the first piece is read before the second comes
        sock.sendall(stream[cut:])
        sock.shutdown(socket.SHUT_WR)
        assert without_cas(name, receive_all(sock)) == expected, f"cut at {cut}"
        sock.close()


@pytest.mark.parametrize("size", [61_000, 70_000, 200_000])
def test_large_body_cut_anywhere(server, size):
    """The same with a body that does not fit into the input, cut at its ends and in between."""
    value = pattern(9, size)
    stream = b"set cut 0 0 %d\r\n%s\r\nget cut\r\n" % (size, value)
    expected = b"STORED\r\n" + value_reply(b"cut", value) + b"END\r\n"
    head = stream.index(b"\n") + 1
    cuts = [1, head - 2, head - 1, head, head + 1, head + 60_000, head + 65_535, head + 65_536]
    cuts += [head + size - 1, head + size, head + size + 1, head + size + 2, len(stream) - 1]
    for cut in cuts:
        with server.connect(PATIENCE_S) as sock:
            sock.sendall(stream[:cut])
            time.sleep(0.002)
            sock.sendall(stream[cut:])
            assert receive_exactly(sock, len(expected)) == expected, f"cut at {cut}"


def test_pipelined_large_bodies_in_odd_pieces(server):
    chance = random.Random(11)
    sizes = [
        chance.choice([1, 100, 59_999, 61_439, 61_440, 61_441, 65_536, 150_000]) for _ in range(40)
    ]
    stream = b"".join(
        b"set o%d 0 0 %d\r\n%s\r\n" % (i, n, pattern(i, n)) for i, n in enumerate(sizes)
    )
    with server.connect(PATIENCE_S) as sock:
        at = 0
        while at < len(stream):
            piece = chance.choice([1, 7, 1000, 40_000, 65_537, 300_000])
            sock.sendall(stream[at : at + piece])
            at += piece
        assert receive_exactly(sock, 8 * len(sizes)) == b"STORED\r\n" * len(sizes)
        for i, n in enumerate(sizes):
            expected = value_reply(b"o%d" % i, pattern(i, n)) + b"END\r\n"
            assert ask(sock, b"get o%d\r\n" % i, b"END\r\n") == expected


ENDLESS = [b"", b"set ", b"mg ", b"\0", b" ", b"stats ", b"get ", b"gat 0 ", b"get " + b"k " * 1000]


@pytest.mark.parametrize("start", ENDLESS, ids=lambda start: repr(start[:6]))
def test_line_without_an_end(server, start):
    """The connection is closed, or what cannot be a key any more is swallowed, and refused when the line ends."""
    with bystander(server), server.connect(PATIENCE_S) as sock:
        said, closed = bytearray(), False
        try:
            sock.sendall(start)
            for _ in range(4096):
                sock.sendall(b"x" * 4096)
                if select.select([sock], [], [], 0)[0]:
                    data = sock.recv(4096)
                    said += data
                    if not data:
                        closed = True
                        break
        except OSError:
            closed = True
        assert closed or not said, said[:200]
        if not closed:
            refusal = b"CLIENT_ERROR bad command line format\r\n"
            assert ask(sock, b"\r\nmn\r\n", b"MN\r\n") == refusal + b"MN\r\n"
    check_memory(server, allowed_mib(64, busy=20))


def test_store_is_not_disturbed(server):
    """A value stored before the hostile bytes is there after them."""
    with server.connect(PATIENCE_S) as sock:
        store(sock, b"treasure", pattern(5, 50_000))
    chance = random.Random(17)
    for _ in range(100):
        say_and_listen(server, chance.randbytes(chance.choice([1, 10, 100, 3000])))
    with server.connect(PATIENCE_S) as sock:
        expected = value_reply(b"treasure", pattern(5, 50_000)) + b"END\r\n"
        assert ask(sock, b"get treasure\r\n", b"END\r\n") == expected
