#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts a server with the given command and sends requests of every kind; ends at the first unexpected reply."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time

LARGE = b"v" * 700_000
DIALOGUE = [
    (b"get a\r\n", b"END\r\n"),
    (b"set a 5 0 3\r\nabc\r\n", b"STORED\r\n"),
    (b"get a\r\n", b"VALUE a 5 3\r\nabc\r\nEND\r\n"),
    (b"add a 0 0 1\r\nx\r\n", b"NOT_STORED\r\n"),
    (b"replace a 0 0 1\r\nx\r\n", b"STORED\r\n"),
    (b"append a 0 0 1\r\ny\r\nprepend a 0 0 1\r\nw\r\nget a\r\n", b"STORED\r\nSTORED\r\nVALUE a 0 3\r\nwxy\r\nEND\r\n"),
    (b"set n 0 0 1\r\n5\r\nincr n 10\r\ndecr n 1\r\nget n\r\n", b"STORED\r\n15\r\n14\r\nVALUE n 0 2\r\n14\r\nEND\r\n"),
    (b"touch n 100\r\ngat 500 n\r\n", b"TOUCHED\r\nVALUE n 0 2\r\n14\r\nEND\r\n"),
    (b"mg n v t\r\nms m 2 T60\r\nhi\r\nmg m v t\r\nmn\r\n", b"VA 2 t500\r\n14\r\nHD\r\nVA 2 t60\r\nhi\r\nMN\r\n"),
    (b"ma n D7\r\nma n v\r\nmd n q\r\nmg n v\r\nmn\r\n", b"HD\r\nVA 2\r\n22\r\nEN\r\nMN\r\n"),
    (b"mg new N30 v t\r\nmg new v\r\n", b"VA 0 t30 W\r\n\r\nVA 0 Z\r\n\r\n"),
    (b"set l 0 0 700000\r\n" + LARGE + b"\r\n", b"STORED\r\n"),
    (b"get l a\r\n", b"VALUE l 0 700000\r\n" + LARGE + b"\r\nVALUE a 0 3\r\nwxy\r\nEND\r\n"),
    (b"delete a\r\nget a n l\r\n"[:10] + b"get a\r\n", b"DELETED\r\nEND\r\n"),
    (b"flush_all\r\nget l m\r\n", b"OK\r\nEND\r\n"),
    (b"".join(b"set k%d 0 0 4\r\n%04d\r\n" % (i, i) for i in range(2000)), b"STORED\r\n" * 2000),
    (b"".join(b"get k%d\r\n" % i for i in range(2000)), b"".join(b"VALUE k%d 0 4\r\n%04d\r\nEND\r\n" % (i, i) for i in range(2000))),
    (b"".join(b"incr c 1\r\nset c 0 0 1\r\n0\r\nincr c 2\r\n" for i in range(100)), b"NOT_FOUND\r\nSTORED\r\n2\r\n" + b"3\r\nSTORED\r\n2\r\n" * 99),
]


def receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(1 << 20)
        if not piece:
            break
        data += piece
    return data


def is_expected(reply: bytes, expected: bytes) -> bool:
    """Times to live may be up to ten seconds less: a checker slows the server down."""
    times = rb"(?<= t)[0-9]+"
    if re.sub(times, b"", reply) != re.sub(times, b"", expected):
        return False
    pairs = zip(re.findall(times, reply), re.findall(times, expected), strict=True)
    return all(0 <= int(told) - int(left) <= 10 for left, told in pairs)


def main() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([*sys.argv[1:], "-l", "127.0.0.1", "-p", str(port), "-m", "256", "-t", "2", "-A"])
    status = 1
    try:
        for _ in range(3000):
            try:
                sock = socket.create_connection(("127.0.0.1", port), 1)
                break
            except OSError:
                time.sleep(0.1)
        sock.settimeout(300)
        for request, expected in DIALOGUE:
            began = time.monotonic()
            sock.sendall(request)
            reply = receive(sock, len(expected))
            if not is_expected(reply, expected):
                print("sent", request[:80], "expected", expected[:200], "got", reply[:200])
                break
            print(f"{request[:30]!r:40} {len(request):8} bytes {(time.monotonic() - began) * 1e6:10.0f} us")
        else:
            sock.sendall(b"stats\r\n")
            time.sleep(1)
            words = dict(line.split()[1:3] for line in sock.recv(65536).decode().splitlines() if line.startswith("STAT"))
            names = ("curr_items", "cmd_get", "cmd_set", "get_hits", "bytes", "evictions")
            print({name: words.get(name) for name in names})
            sock.sendall(b"lru_crawler metadump all\r\n")
            dumped = b""
            while not dumped.endswith(b"END\r\n"):
                piece = sock.recv(1 << 20)
                if not piece:
                    raise ConnectionError("the dump has no end")
                dumped += piece
            print(dumped.count(b"key="), "keys in a dump")
            # In good order: whatever watches the server has something to say at its end.
            sock.sendall(b"shutdown\r\n")
            status = server.wait(60)
    except OSError as failure:
        print("no reply:", failure)
    finally:
        if server.poll() is None:
            server.terminate()
        try:
            print("the server ended with", server.wait(60))
        except subprocess.TimeoutExpired:
            server.kill()
            print("the server did not end and was killed:", server.wait())
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
