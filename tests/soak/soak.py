# SPDX-License-Identifier: Apache-2.0
"""A soak: two servers, one that evicts and one that does not (-M), each with well-behaved clients,
faults and a watcher."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from faults.support import (
    ask_once,
    connections,
    descriptor_count,
    eventually,
    others_wait_s_max,
    packet,
    pattern,
    peak_mib,
    stats,
)
from harness import measure
from harness.binary import HEADER, HEADER_SIZE
from harness.exchange import ask
from harness.servers import Server, Target, start_server

from soak.clients import ClientProcess
from soak.shared import PATIENCE_S, Happening, Situation
from soak.trouble import CONNECTIONS_MAX, MEGABYTES, PAUSE_S, Trouble
from soak.watch import THREADS, Watch, check_one, parse_stats

CLOCK_SHIM = Path(__file__).resolve().parents[1] / "faults" / "clock_shim.c"
SETTLE_S_MAX = 30.0
REPLAY_REQUESTS = 200_000  # of one run of the load
REPLAY_KEYS = 300_000
BAD_LOG = ("Sanitizer", "runtime error:", "assertion")
TURNED_AWAY = re.compile("Broken pipe|reset by peer|closed|Too many open connections")
DUMPED = re.compile(rb"^key=(\S+) exp=(-?\d+) .* size=(\d+)", re.MULTILINE)
FOR_EVER = b"-1"
# The smallest memory that a server can be told to use. Filled anew, it holds nothing that was
# dead before.
LIMIT_MIB_MIN = 8
FILLER_BYTES = 30_000
# What is left when nothing is alive: what segments that are still open hold.
LEAST_MIB = 2
LEAST_ITEMS = LEAST_MIB * 16_384
MIB = 1 << 20


@dataclass
class Result:
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0
    peaks_mib: dict[str, float] = field(default_factory=dict)
    allowed_mib: float = 0.0
    problems: list[str] = field(default_factory=list)


class Load:
    """A look-aside cache's traffic, for as long as the soak lasts; every value is checked whole."""

    def __init__(self, server: Server, seed: int, floods: Happening):
        self.server = server
        self.floods = floods
        self.chance = random.Random(f"{seed}/load")
        self.requests = 0
        self.failure: str | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        self._ending.set()
        self._thread.join(measure.CLIENT_TIMEOUT_S)

    def _run(self) -> None:
        while not self._ending.is_set() and self.failure is None:
            floods_ended = self.floods.at_least()
            try:
                measure.client(
                    self.server,
                    "replay",
                    seed=self.chance.randrange(1 << 30),  # never the same keys again
                    keys=REPLAY_KEYS,
                    requests=REPLAY_REQUESTS,
                    warm_up=0,
                )
                self.requests += REPLAY_REQUESTS
            except (measure.ClientError, subprocess.TimeoutExpired) as problem:
                flooded = self.floods.at_most() > floods_ended
                if not (flooded and TURNED_AWAY.search(str(problem))):
                    self.failure = f"load: {problem}"


class Party:
    """One server with its clients, faults and watcher."""

    def __init__(self, target: Target, lossy: bool, seed: int, shim: Path | None, folder: Path):
        options = ["-m", str(MEGABYTES), "-t", str(THREADS), "-c", str(CONNECTIONS_MAX)]
        options += ["-o", "stall_timeout=600"]  # half requests are held for up to four minutes
        environment = {}
        wall_shift = None
        if shim is not None:
            wall_shift = folder / ("evicting" if lossy else "keeping")
            wall_shift.write_text("0")
            sanitizer = os.environ.get("ASAN_OPTIONS", "")
            environment = {"LD_PRELOAD": str(shim), "CLOCK_SHIM": str(wall_shift)}
            environment["ASAN_OPTIONS"] = f"{sanitizer}:verify_asan_link_order=0"
        self.server = start_server(
            target, options if lossy else [*options, "-M"], udp=True, env=environment
        )
        assert eventually(lambda: connections(self.server) == 0)
        self.descriptors = descriptor_count(self.server)
        self.where = Situation(
            name="evicting" if lossy else "keeping",
            port=self.server.port,
            lossy=lossy,
            seed=seed,
            wait_s_max=others_wait_s_max(self.server) + PAUSE_S,
            flushes=Happening(),
            clock_shift_s=Happening(),
            floods=Happening(),
        )
        self.client = ClientProcess(self.where, 0)
        self.client.wait_ready()
        self.watch = Watch(self.where, self.server)
        self.trouble = Trouble(self.where, self.server, wall_shift)
        self.load = Load(self.server, seed, self.where.floods) if lossy else None
        self.watch.start()
        self.trouble.start()

    def problems(self) -> list[str]:
        """What has gone wrong so far."""
        found = [self.trouble.failure, self.watch.problem()]
        if self.load is not None:
            found.append(self.load.failure)
        if not self.server.alive():
            found.append(f"ended with {self.server.process.poll()}: {self.server.log()[-4000:]}")
        return [problem for problem in found if problem is not None]

    def has_failed(self) -> bool:
        return bool(self.problems()) or self.client.has_failed()

    def finish(self, result: Result) -> None:
        """Ends the faults, then the clients, which read everything once more; then checks the server."""
        self.trouble.finish()
        if self.load is not None:
            self.load.finish()
            result.counts["requests of the load"] += self.load.requests
        failure, report = self.client.finish(2 * PATIENCE_S)
        self.watch.finish()
        if failure is not None:
            result.problems.append(failure)
        result.problems += self.problems()
        result.counts += report
        result.counts["requests of the others"] += self.watch.bystander.requests
        result.counts["looks at the statistics"] += self.watch.looks
        result.faults += self.trouble.counts
        result.longest_s = max(result.longest_s, self.watch.bystander.longest_s)
        result.peaks_mib[self.where.name] = round(peak_mib(self.server), 1)
        result.allowed_mib = round(self.watch.allowed_mib, 1)
        try:
            self._check_at_rest()
        except (AssertionError, OSError) as problem:
            result.problems.append(f"{self.where.name}, at rest: {problem!r}")

    def _check_at_rest(self) -> None:
        """Checks that no client is connected, nothing is held, and the counted items exist."""
        server = self.server

        def reads(name: str) -> int:
            return int(stats(server)[name])

        assert eventually(lambda: connections(server) == 0, SETTLE_S_MAX), "connections are left"
        assert eventually(lambda: descriptor_count(server) <= self.descriptors, SETTLE_S_MAX), (
            f"{descriptor_count(server)} descriptors, {self.descriptors} at the start"
        )
        assert eventually(
            lambda: reads("segments_pinned") + reads("segments_reserved") == 0, SETTLE_S_MAX
        ), "segments stay pinned or reserved"

        self._delete_all(self._check_counts())
        # With nothing alive the server can go down to its least memory, where what is dead and
        # still counted has to go for what comes: then what it counts is there.
        self._set_limit(LIMIT_MIB_MIN)
        self._fill()
        self._delete_all(self._check_counts())
        assert eventually(
            lambda: reads("bytes") <= LEAST_MIB * MIB and reads("curr_items") <= LEAST_ITEMS,
            SETTLE_S_MAX,
        ), f"{reads('curr_items')} items of {reads('bytes')} bytes after all were deleted"
        self._set_limit(MEGABYTES)

    def _set_limit(self, megabytes: int) -> None:
        reply = ask_once(self.server, b"cache_memlimit %d\r\n" % megabytes)
        assert reply == b"OK\r\n", reply

    def _fill(self) -> None:
        """Stores three times the least memory, or until memory is full."""
        value = pattern(1, FILLER_BYTES)
        with self.server.connect(PATIENCE_S) as sock:
            for number in range(3 * LIMIT_MIB_MIN * MIB // FILLER_BYTES):
                line = b"set filler%d 0 0 %d\r\n" % (number, FILLER_BYTES)
                reply = ask(sock, line + value + b"\r\n")
                if reply != b"STORED\r\n":
                    assert not self.where.lossy and reply.startswith(b"SERVER_ERROR out of memory")
                    return

    def _check_counts(self) -> dict[bytes, bool]:
        """The keys that are there, and whether for ever: no more than are counted, and no larger."""
        # Read first: nothing is stored meanwhile, but some may expire.
        numbers = parse_stats(ask_once(self.server, b"stats\r\n", b"END\r\n"))
        dumped = DUMPED.findall(ask_once(self.server, b"lru_crawler metadump all\r\n", b"END\r\n"))
        check_one({**numbers, "segments_in_all": 0}, self.where.lossy)
        footprints = sum(int(size) for _, _, size in dumped)
        assert len(dumped) <= numbers["curr_items"], (len(dumped), numbers)
        assert footprints <= numbers["bytes"] + 16 * numbers["curr_items"], (footprints, numbers)
        return {
            urllib.parse.unquote_to_bytes(key): expiry == FOR_EVER for key, expiry, _ in dumped
        }

    def _delete_all(self, keys: dict[bytes, bool]) -> None:
        """What a walk has shown is there to be deleted, unless it has expired or been evicted."""
        before = int(stats(self.server)["curr_items"])
        names = list(keys)
        deleted = deleted_for_ever = 0
        with self.server.connect(PATIENCE_S) as sock, sock.makefile("rb") as replies:
            for first in range(0, len(keys), 100):
                some = names[first : first + 100]
                sock.sendall(b"".join(packet("delete", key) for key in some))
                for key in some:
                    header = replies.read(HEADER_SIZE)
                    _, _, _, _, _, status, size, _, _ = HEADER.unpack(header)
                    replies.read(size)
                    may_miss = self.where.lossy or not keys[key]
                    assert status == 0 or (status == 1 and may_miss), (key, status)
                    deleted += status == 0
                    deleted_for_ever += status == 0 and keys[key]
        after = int(stats(self.server)["curr_items"])
        assert after <= before - deleted, f"{before} items, {deleted} deleted, {after} left"
        for_ever = sum(keys.values())
        assert deleted_for_ever >= for_ever / 2, f"{deleted_for_ever} of {for_ever} keys were there"

    def stop(self, result: Result) -> None:
        self.client.kill()
        log = self.server.log()
        found = [word for word in BAD_LOG if word in log]
        status = self.server.stop()
        if found or status != 0:
            result.problems.append(f"{self.where.name}: status {status}, log {log[-4000:]}")


def build_clock_shim(folder: Path) -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "clock_shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, CLOCK_SHIM], check=True)
    return library


def run_soak(target: Target, seconds: float, seed: int, folder: Path) -> Result:
    """`folder`: for files of its own."""
    result = Result()
    shim = build_clock_shim(folder)
    begin = time.monotonic()
    with ExitStack() as stack:
        parties = []
        for lossy in (True, False):
            party = Party(target, lossy, seed, shim, folder)
            stack.callback(party.stop, result)
            parties.append(party)
        while time.monotonic() - begin < seconds:
            time.sleep(0.2)
            if any(party.has_failed() for party in parties):
                break
        result.seconds = round(time.monotonic() - begin, 1)
        for party in parties:
            party.finish(result)
    return result
