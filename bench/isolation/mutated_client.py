#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ordinary requests with some bytes changed, on many connections, until it is killed.

Arguments: host, port, seed, connections. Reads what comes back half of the time only.
"""

from __future__ import annotations

import random
import socket
import sys
import time

REQUESTS = [
    *(b"get a\r\n", b"get a b c d\r\n", b"gets a\r\n", b"set a 0 0 3\r\nabc\r\n"),
    *(b"add b 1 2 1\r\nx\r\n", b"set n 0 0 1\r\n1\r\n", b"incr n 1\r\n", b"append a 0 0 1\r\nx\r\n"),
    *(b"delete a\r\n", b"touch a 10\r\n", b"gat 10 a b\r\n", b"version\r\n", b"mg a v t f s k\r\n"),
    *(b"ms a 3 T10\r\nabc\r\n", b"ma n N0 J5 v\r\n", b"md a q\r\n", b"mn\r\n", b"me a\r\n"),
    *(b"stats\r\n", b"stats items\r\n", b"stats slabs\r\n", b"stats settings\r\n"),
    *(b"cache_memlimit 64\r\n", b"cache_memlimit 2000\r\n", b"flush_all\r\n", b"verbosity 1\r\n"),
    b"\x80\0\0\1\0\0\0\0\0\0\0\1" + bytes(12) + b"a",
    b"\x80\1\0\1\x08\0\0\0\0\0\0\x0c" + bytes(20) + b"aabc",
]
BATCHES = 500


def mutated(chance: random.Random) -> bytes:
    request = bytearray(chance.choice(REQUESTS))
    if chance.random() < 0.5:
        return bytes(request)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(request))
        how = chance.randrange(4)
        if how == 0:
            request[at] = chance.getrandbits(8)
        elif how == 1:
            del request[at : at + chance.randint(1, 3)]
        elif how == 2:
            request[at:at] = chance.choice([b" ", b"\0", b"\r\n", b"0", b"9", b" noreply", b" q"])
        else:
            request[at:at] = str(chance.getrandbits(chance.choice([8, 16, 32]))).encode()
        if not request:
            break
    return bytes(request)


def connect(host: str, port: int) -> socket.socket | None:
    try:
        sock = socket.create_connection((host, port), 5)
        sock.setblocking(False)
        return sock
    except OSError:
        return None


def exchange(sock: socket.socket, chance: random.Random, batch: bytes) -> bool:
    """Returns whether the connection can still be used."""
    try:
        sock.send(batch)
    except BlockingIOError:
        pass
    except OSError:
        return False
    try:
        return chance.random() < 0.5 or sock.recv(1 << 18) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def main() -> None:
    host, port = sys.argv[1], int(sys.argv[2])
    chance = random.Random(int(sys.argv[3]))
    batches = [
        b"".join(mutated(chance) for _ in range(chance.randint(1, 40))) for _ in range(BATCHES)
    ]
    socks = [connect(host, port) for _ in range(int(sys.argv[4]))]
    while True:
        for i, sock in enumerate(socks):
            if sock is None or chance.random() < 0.002:
                if sock is not None:
                    sock.close()
                socks[i] = connect(host, port)
            elif not exchange(sock, chance, chance.choice(batches)):
                sock.close()
                socks[i] = None
        time.sleep(0.001)


if __name__ == "__main__":
    main()
