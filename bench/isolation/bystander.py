#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A well-behaved client in a separate process: sends one `mg` at a time and reports how long each waited.

Arguments: host, port, period in ms. For each line on standard input it prints one JSON line with
the waits since the line before; the end of the input ends it. Time is wall time, monotonic clock.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
import time

# New connections go to the worker with the fewest, so a few connections reach all workers.
CONNECTIONS = 8
ANSWER_S_MAX = 30.0
KEY = b"bystander"
REQUEST = b"mg %s v\r\n" % KEY
ANSWERS = (b"EN\r\n", b"VA 1\r\nb\r\n")  # others may flush or evict it


def connect(host: str, port: int) -> socket.socket:
    sock = socket.create_connection((host, port), ANSWER_S_MAX)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def with_missed_rounds(waits: list[float], period_s: float) -> list[float]:
    """A request that waits longer than a period delays the later ones: each of those
    would have waited for the rest of that time. Without them a stall of seconds is one sample."""
    found = []
    for wait in waits:
        while wait > 0:
            found.append(wait)
            wait -= period_s
    return sorted(found)


def summary(waits: list[float], period_s: float) -> dict:
    every = with_missed_rounds(waits, period_s)
    if not every:
        return {"answers": 0}

    def at(share: float) -> float:
        return round(1000 * every[min(len(every) - 1, int(share * len(every)))], 3)

    return {"answers": len(waits), "p50_ms": at(0.5), "p99_ms": at(0.99), "longest_ms": at(1.0)}


def wait_for_answer(sock: socket.socket) -> float:
    started = time.monotonic()
    sock.sendall(REQUEST)
    answer = b""
    while not answer.endswith(ANSWERS):
        data = sock.recv(4096)
        if not data or len(answer) > 100:
            raise ConnectionError(f"ended after {answer!r}")
        answer += data
    return time.monotonic() - started


def serve_reports(waits: list[float], period_s: float, **more: object) -> bool:
    """Waits for a line, at most a period; False: the input has ended."""
    if select.select([0], [], [], period_s)[0]:
        if not os.read(0, 4096):
            return False
        print(json.dumps({**summary(waits, period_s), **more}), flush=True)
        waits.clear()
    return True


def main() -> None:
    host, port, period_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 1000
    socks = [connect(host, port) for _ in range(CONNECTIONS)]
    socks[0].sendall(b"set %s 0 0 1\r\nb\r\n" % KEY)
    assert socks[0].recv(100) == b"STORED\r\n"
    gc.disable()
    waits: list[float] = []
    round_number = 0
    while serve_reports(waits, period_s):
        started = time.monotonic()
        try:
            waits.append(wait_for_answer(socks[round_number % CONNECTIONS]))
        except OSError as failure:
            waits.append(time.monotonic() - started)
            while serve_reports(waits, period_s, failed=repr(failure)):
                pass
            return
        round_number += 1


if __name__ == "__main__":
    main()
