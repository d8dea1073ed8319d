#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Watches a server from outside: its memory, and connections that clients closed and it did not.

Arguments: pid, port, MiB at which the server is killed. For each line on standard input it prints
one JSON line with the peaks since the line before; the end of the input ends it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path

PERIOD_S = 0.1
CLOSE_WAIT = "08"


def status_mib(pid: int, name: str) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
    except (OSError, ValueError):
        pass
    return 0.0


def close_waiting(pid: int, port: int) -> set[str]:
    """The clients' addresses of the server's connections in CLOSE-WAIT."""
    local = f":{port:04X}"
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return set()
    rows = (line.split(None, 4) for line in lines)
    return {row[2] for row in rows if row[1].endswith(local) and row[3] == CLOSE_WAIT}


class Watch:
    def __init__(self, pid: int, port: int, rss_mib_max: float) -> None:
        self.pid, self.port, self.rss_mib_max = pid, port, rss_mib_max
        self.since: dict[str, float] = {}
        self.killed = False
        self.peak_mib = 0.0
        self.start_over()

    def start_over(self) -> None:
        self.longest_s, self.most, self.peak_mib = 0.0, 0, 0.0
        try:
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # VmHWM begins anew
        except OSError:
            pass

    def look(self) -> None:
        now = time.monotonic()
        waiting = close_waiting(self.pid, self.port)
        self.since = {peer: self.since.get(peer, now) for peer in waiting}
        self.most = max(self.most, len(waiting))
        self.longest_s = max([self.longest_s, *(now - since for since in self.since.values())])
        self.peak_mib = max(self.peak_mib, status_mib(self.pid, "VmHWM"))
        if self.peak_mib > self.rss_mib_max and not self.killed:
            os.kill(self.pid, signal.SIGKILL)
            self.killed = True

    def report(self) -> dict:
        self.look()
        found = {
            "peak_mib": round(self.peak_mib, 1),
            "rss_mib": round(status_mib(self.pid, "VmRSS"), 1),
            "close_wait_most": self.most,
            "close_wait_left": len(self.since),
            "close_wait_longest_s": round(self.longest_s, 2),
            "killed_for_memory": self.killed,
        }
        self.start_over()
        return found


def main() -> None:
    watch = Watch(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    while True:
        if select.select([0], [], [], PERIOD_S)[0]:
            if not os.read(0, 4096):
                return
            print(json.dumps(watch.report()), flush=True)
        else:
            watch.look()


if __name__ == "__main__":
    main()
