# SPDX-License-Identifier: Apache-2.0
"""Bytes that no well-behaved client sends: valid requests of all protocols, mutated."""

from __future__ import annotations

import random
import select
import socket

from harness.binary import HEADER, OPCODES
from harness.channels import UDP_HEADER
from harness.exchange import receive_all
from harness.patience import PATIENCE_S

from faults.support import packet, pattern


def say_and_listen(server, request: bytes) -> bytes:
    """The complete reply to a client that sends this and shuts down its side. The server must close."""
    with server.connect(PATIENCE_S) as sock:
        try:
            sock.sendall(request)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # It closed before all was said.
        return receive_all(sock)


def drain(sock: socket.socket, wait_s: float = 0.0) -> list[bytes]:
    datagrams = []
    while select.select([sock], [], [], wait_s)[0]:
        try:
            datagrams.append(sock.recv(65536))
        except ConnectionRefusedError:
            break
    return datagrams


EXTRAS = {
    **dict.fromkeys(("set", "add", "replace", "setq", "addq", "replaceq"), bytes(8)),
    **dict.fromkeys(("incr", "decr", "incrq", "decrq"), bytes(20)),
    **dict.fromkeys(("touch", "gat", "gatq", "gatk", "gatkq", "flush", "verbosity"), bytes(4)),
}
WITHOUT_KEY = {
    "noop",
    "quit",
    "quitq",
    "version",
    "stat",
    "flush",
    "flushq",
    "verbosity",
    "sasl_list",
}
NUMBERS = {
    1: [0, 1, 4, 7, 8, 9, 20, 0x7F, 0x80, 0x81, 0xFE, 0xFF],
    2: [0, 1, 5, 0x20, 250, 251, 255, 256, 0x7FFF, 0x8000, 0xFFFF],
    4: [0, 1, 7, 8, 24, 250, 2048, 65535, 65536, 1 << 20, 1 << 30, 0x7FFFFFFF]
    + [0x80000000, 0x80000102, 0xFFFFFFD0, 0xFFFFFFFE, 0xFFFFFFFF],
    8: [0, 1, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF],
}
FIELD_SIZES = (1, 1, 2, 1, 1, 2, 4, 4, 8)  # as in HEADER
QUITS = {OPCODES["quit"], OPCODES["quitq"]}


def honest_packet(chance: random.Random) -> bytes:
    name = chance.choice(list(OPCODES))
    key = b"" if name in WITHOUT_KEY else b"key%d" % chance.randrange(4)
    value = chance.choice([b"", b"1", pattern(1, 300)])
    carries_value = name.rstrip("q") in ("set", "add", "replace", "append", "prepend")
    return packet(name, key, value if carries_value else b"", EXTRAS.get(name, b""))


def mutated(chance: random.Random, request: bytes) -> bytes:
    """Changes one to three header fields to a special or a random value."""
    fields = list(HEADER.unpack_from(request))
    for _ in range(chance.randint(1, 3)):
        which = chance.randrange(1, len(fields)) if chance.random() < 0.95 else 0
        bits = 8 * FIELD_SIZES[which]
        if chance.random() < 0.7:
            fields[which] = chance.choice(NUMBERS[FIELD_SIZES[which]])
        else:
            fields[which] = chance.getrandbits(bits)
    body = request[HEADER.size :]
    if chance.random() < 0.2:
        body = body[: chance.randrange(len(body) + 1)]
    if chance.random() < 0.2:
        body += chance.randbytes(chance.choice([1, 24, 300, 5000]))
    return HEADER.pack(*fields) + body


LINES = [
    *(b"get a", b"get a b c d", b"gets a", b"set a 0 0 3\r\nabc", b"set a 0 0 3 noreply\r\nabc"),
    *(b"add b 1 2 1\r\nx", b"cas a 0 0 1 5\r\nx", b"append a 0 0 1\r\nx", b"incr a 1", b"decr a 1"),
    *(b"delete a", b"touch a 10", b"gat 10 a b", b"gats 10 a", b"version", b"verbosity 1"),
    *(b"stats", b"stats items", b"stats slabs", b"stats sizes", b"stats settings", b"stats conns"),
    *(b"stats detail dump", b"stats cachedump 1 10", b"stats reset", b"flush_all 0", b"shutdown"),
    *(
        b"mg a v t f s k c q O1",
        b"mg YWJj b v k",
        b"ms a 3 T10 F5 c\r\nabc",
        b"md a q",
        b"mn",
        b"me a",
    ),
    *(b"ma a N0 J5 D2 v t c", b"lru mode flat", b"lru_crawler metadump all", b"slabs automove 1"),
    *(b"cache_memlimit 64", b"watch fetchers", b"misbehave", b"debugtime 0", b"quit", b"mgdump"),
    *(
        b"lru_crawler mgdump all",
        b"lru tune 10 25 0.1 2.0",
        b"lru temp_ttl 60",
        b"slabs reassign 1 2",
    ),
    *(
        b"extstore free_memchunks 1 1",
        b"refresh_certs",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"mstore a",
    ),
]


def mutated_line(chance: random.Random) -> bytes:
    line = bytearray(chance.choice(LINES) + b"\r\n")
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(line) + 1)
        how = chance.randrange(6)
        if how == 0 and at < len(line):
            line[at] = chance.getrandbits(8)
        elif how == 1:
            line[at:at] = chance.choice([b" ", b"\0", b"\r", b"\n", b"\r\n", b"  ", b"\x80", b"-"])
        elif how == 2:
            del line[at : at + chance.randint(1, 3)]
        elif how == 3:
            line[at:at] = str(chance.choice(NUMBERS[8] + NUMBERS[4])).encode()
        elif how == 4:
            line[at:at] = chance.choice([b" noreply", b" q", b" T-1", b" O" + b"o" * 40, b" S9"])
        else:
            line[at:at] = bytes([chance.getrandbits(8)]) * chance.choice([10, 250, 251, 3000])
    return bytes(line)


def mutated_datagram(chance: random.Random, number: int) -> bytes:
    """A datagram with a wrong header, request or length."""
    header = [number & 0xFFFF, 0, 1, 0]
    if chance.random() < 0.5:
        header[chance.randrange(4)] = chance.choice(NUMBERS[2])
    kind = chance.randrange(4)
    if kind == 0:
        request = mutated(chance, honest_packet(chance))
    elif kind == 1:
        request = mutated_line(chance)
    elif kind == 2:
        request = chance.choice(LINES) + b"\r\n"
    else:
        request = chance.randbytes(chance.choice([0, 1, 7, 24, 100, 1392, 9000]))
    datagram = UDP_HEADER.pack(*header) + request
    if chance.random() < 0.1:
        datagram = datagram[: chance.randrange(12)]
    return datagram[:65000]
