#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long one client waits for a set and a get, by the size of the value, and for each of a pipeline of up to 50.

Usage: bench/gpu/value_sizes.py WARPCACHED...
Each server runs alone, the first on the CPU engine too; medians in microseconds.
"""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import time

SIZES = (10, 1_000, 4_000, 16_000, 50_000, 100_000, 700_000)  # bytes
ENGINES = (["--engine=cuda"], ["--engine=cuda", "--gpu-mode=persistent"], ["--engine=cuda", "--values=host"])
START_SECONDS_MAX = 30
PAUSE_SECONDS = 2.6  # after which an engine has released the GPU


class Client:
    def __init__(self, port: int) -> None:
        end = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                self.sock = socket.create_connection(("127.0.0.1", port), 10)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes, reply: bytes) -> float:
        began = time.perf_counter()
        self.sock.sendall(request)
        got = bytearray()
        while len(got) < len(reply):
            piece = self.sock.recv(1 << 20)
            if not piece:
                raise ConnectionError("the server has closed the connection")
            got += piece
        took = time.perf_counter() - began
        if bytes(got) != reply:
            raise AssertionError(f"to {request[:40]!r} came {bytes(got[:80])!r}")
        return took * 1e6


def measure(client: Client, size: int) -> str:
    value = b"v" * size

    def set_of(key: int) -> bytes:
        return b"set k%d 0 0 %d\r\n%s\r\n" % (key, size, value)

    def hit_of(key: int) -> bytes:
        return b"VALUE k%d 0 %d\r\n%s\r\nEND\r\n" % (key, size, value)

    rounds = max(20, min(300, 3_000_000 // size))
    at_once = min(50, 4_000_000 // size)
    keys = range(at_once)
    sets = [client.ask(set_of(i % 50), b"STORED\r\n") for i in range(rounds)]
    gets = [client.ask(b"get k1\r\n", hit_of(1)) for _ in range(rounds)]
    all_sets, all_gets = b"".join(map(set_of, keys)), b"".join(b"get k%d\r\n" % i for i in keys)
    piped_sets = [client.ask(all_sets, b"STORED\r\n" * at_once) / at_once for _ in range(5)]
    piped_gets = [client.ask(all_gets, b"".join(map(hit_of, keys))) / at_once for _ in range(5)]
    return "{:8}  {:6.0f} {:6.0f}  {:6.0f} {:6.0f}".format(
        size, *map(statistics.median, (sets, gets, piped_sets, piped_gets))
    )


def run(command: list[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([*command, "-u", "root", "-m", "2048", "-t", "2", "-l", "127.0.0.1", "-p", str(port)])
    try:
        client = Client(port)
        print(" ".join(command), "\n    size     set    get   of a pipeline", flush=True)
        for size in SIZES:
            print(measure(client, size), flush=True)
        client.ask(b"get none\r\n", b"END\r\n")
        time.sleep(PAUSE_SECONDS)
        took = client.ask(b"get none\r\n", b"END\r\n")
        print(f"a get after {PAUSE_SECONDS} s of silence: {took:.0f}", flush=True)
    finally:
        server.terminate()
        server.wait(60)


def main() -> None:
    programs = sys.argv[1:]
    if not programs:
        sys.exit(__doc__)
    run([programs[0], "--engine=cpu"])
    for engine in ENGINES:
        for program in programs:
            run([program, *engine])


if __name__ == "__main__":
    main()
