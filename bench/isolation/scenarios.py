# SPDX-License-Identifier: Apache-2.0
"""The attacks by name. Each belongs to a line of the table in docs/reliability.md."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attack import ANSWERED, Attack, ask, ask_datagram, for_seconds, read_all, refused, stats

DUMP = b"lru_crawler metadump all\r\n"
MUTATED_PROCESSES = 8
MUTATED_CONNECTIONS = 25
LARGE = 100_000  # bytes: above what is copied into replies
UNREAD_S = 3.0  # how long replies stay unread while the bystander continues


@dataclass(frozen=True)
class Scenario:
    name: str
    what: str
    act: Callable[[Attack], None]
    options: tuple[str, ...] = ()
    udp: bool = False
    end: signal.Signals = signal.SIGTERM


def read_dumps(attack: Attack) -> None:
    sock = attack.connect()
    attack.say(sock, DUMP * 32 + b"mn\r\n")
    read_all(attack, [sock])


def unread_dumps(connections: int) -> Callable[[Attack], None]:
    def act(attack: Attack) -> None:
        for _ in range(connections):
            attack.say(attack.connect(), DUMP * 30)
        time.sleep(min(attack.seconds, UNREAD_S))
        sock = attack.connect()
        attack.say(sock, DUMP + b"mn\r\n")
        read_all(attack, [sock])

    return act


def datagram(dumps: int) -> Callable[[Attack], None]:
    return lambda attack: ask_datagram(attack, b"".join([DUMP[:-2] + b"\n"] * dumps)[:65_000])


def sizes(attack: Attack) -> None:
    sock = attack.connect()
    attack.facts["enabled"] = ask(sock, b"stats sizes_enable\r\n", b"\r\n").decode().strip()
    attack.say(sock, b"stats sizes\r\n" * 64 + b"mn\r\n")
    read_all(attack, [sock])


def cachedump(attack: Attack) -> None:
    socks = [attack.connect() for _ in range(20)]
    for sock in socks:
        attack.say(sock, b"stats cachedump 1 0\r\n" * 10 + b"mn\r\n")
    read_all(attack, socks)


def detail_dump(attack: Attack) -> None:
    sock = attack.connect()
    ask(sock, b"stats detail on\r\n", b"OK\r\n")
    for start in range(0, 50_000, 1000):
        gets = b"".join(b"get prefix%06d:x\r\n" % i for i in range(start, start + 1000))
        ask(sock, gets + b"mn\r\n", ANSWERED)
    attack.say(sock, b"stats detail dump\r\n" * 32 + b"mn\r\n")
    read_all(attack, [sock])


def sizes_then_end(attack: Attack) -> None:
    sock = attack.connect()
    ask(sock, b"stats sizes_enable\r\n", b"\r\n")
    attack.say(sock, b"stats sizes\r\n" * 1000)
    time.sleep(0.5)


def memory_limit(attack: Attack) -> None:
    sock = attack.connect()
    longest = 0.0

    def pair() -> None:
        nonlocal longest
        started = time.monotonic()
        for megabytes in (20_000, 64):
            reply = ask(sock, b"cache_memlimit %d\r\n" % megabytes, b"\r\n")
            attack.facts["refused"] = refused(reply)
        longest = max(longest, time.monotonic() - started)

    attack.facts["pairs"] = for_seconds(attack, pair)
    attack.facts["pair_longest_ms"] = round(1000 * longest, 2)
    started = time.monotonic()
    stats(attack)
    attack.answer_s = round(time.monotonic() - started, 4)
    attack.facts["answer"] = "of one `stats` afterwards"


def many_connections(attack: Attack) -> None:
    for _ in range(10_000):
        attack.connect()
    sock = attack.connect()
    attack.say(sock, b"stats conns\r\n" * 50 + b"mn\r\n")
    read_all(attack, [sock])


def mutated(attack: Attack) -> None:
    chance = random.Random(1)
    script = str(Path(__file__).with_name("mutated_client.py"))

    def start(seed: int) -> subprocess.Popen:
        where = [attack.server.host, str(attack.server.port)]
        return subprocess.Popen(
            [sys.executable, script, *where, str(seed), str(MUTATED_CONNECTIONS)]
        )

    attack.processes += [start(seed) for seed in range(MUTATED_PROCESSES)]

    def kill_one() -> None:
        time.sleep(chance.uniform(0.2, 1.5))
        which = chance.randrange(MUTATED_PROCESSES)
        attack.processes[which].kill()
        attack.processes[which].wait()
        attack.processes[which] = start(chance.randrange(1 << 30))

    attack.facts["killed"] = for_seconds(attack, kill_one)
    for process in attack.processes:
        process.kill()
        process.wait()
    attack.processes.clear()
    started = time.monotonic()
    stats(attack, 60.0)
    attack.answer_s = round(time.monotonic() - started, 4)
    attack.facts["answer"] = "of one `stats` afterwards"


def pipelined_stats(attack: Attack) -> None:
    taken = 0
    for _ in range(100):
        taken += attack.say(attack.connect(), b"stats\r\n" * 9000)
    attack.facts["taken_whole"] = taken
    time.sleep(min(attack.seconds, UNREAD_S))
    sock = attack.connect()
    attack.say(sock, b"stats\r\nmn\r\n")
    read_all(attack, [sock])


def half_bodies(attack: Attack) -> None:
    for _ in range(100):
        attack.say(attack.connect(), b"set hoard 0 0 1000000\r\n" + b"h" * 1000)
    sock = attack.connect()
    body = b"m" * 500_000
    started = time.monotonic()
    replies = [
        ask(sock, b"set mine%d 0 0 %d\r\n%s\r\n" % (i, len(body), body), b"\r\n") for i in range(20)
    ]
    attack.answer_s = round(time.monotonic() - started, 3)
    attack.facts.update(answer="of 20 sets of 500 KB", refused=sum(map(refused, replies)))


def stalled_readers(attack: Attack) -> None:
    """The unread replies must exceed the bound of pinned memory: more than a quarter of the memory."""
    sock = attack.connect()
    values = 300
    for i in range(values):
        ask(sock, b"set large%d 0 0 %d\r\n%s\r\n" % (i, LARGE, b"%08d" % i * (LARGE // 8)), b"\r\n")
    for start in range(60):
        stalled = attack.connect(receive_bytes=4096)
        keys = b"".join(b" large%d" % ((start * 5 + i) % values) for i in range(values))
        attack.say(stalled, b"get" + keys + b"\r\n")
    time.sleep(0.5)
    attack.facts["segments_pinned"] = stats(attack).get("segments_pinned")
    missed, longest = 0, 0.0
    begun = time.monotonic()
    for i in range(200):
        started = time.monotonic()
        missed += ask(sock, b"get large%d\r\n" % (i % values), b"END\r\n") == b"END\r\n"
        longest = max(longest, time.monotonic() - started)
    attack.answer_s = round(time.monotonic() - begun, 3)
    attack.facts.update(
        answer="of 200 gets of 100 KB", missed=missed, get_longest_ms=round(1000 * longest, 1)
    )


SCENARIOS = [
    Scenario("dumps-in-one-write", "32 metadump in one write", read_dumps),
    Scenario("dumps-100x30-unread", "100 connections, 30 metadump each, unread", unread_dumps(100)),
    Scenario("dumps-400x30-unread", "400 connections, 30 metadump each, unread", unread_dumps(400)),
    Scenario("dumps-udp-100", "100 metadump in one datagram", datagram(100), udp=True),
    Scenario("dumps-udp-2600", "2,600 metadump in one datagram", datagram(2600), udp=True),
    Scenario("sizes-64", "64 stats sizes", sizes),
    Scenario("cachedump-20x10", "20 connections, 10 stats cachedump 1 0 each", cachedump),
    Scenario("detail-dump-32", "32 stats detail dump of 50,000 prefixes", detail_dump),
    Scenario("sizes-1000-sigterm", "1,000 stats sizes, then SIGTERM", sizes_then_end),
    Scenario(
        "sizes-1000-sigusr1",
        "1,000 stats sizes, then SIGUSR1",
        sizes_then_end,
        end=signal.SIGUSR1,
    ),
    Scenario("memory-limit", "cache_memlimit 20000, then 64, again and again", memory_limit),
    Scenario(
        "conns-10000", "10,000 connections, 50 stats conns", many_connections, ("-c", "12000")
    ),
    Scenario("mutated-200", "200 connections of mutated requests, clients killed", mutated),
    Scenario("stats-100x9000", "100 connections, 9,000 stats each, unread", pipelined_stats),
    Scenario("half-bodies", "100 bodies of 1 MB, begun and left", half_bodies),
    Scenario("stalled-readers", "60 multigets of 30 MB, unread", stalled_readers),
]
NAMES = [scenario.name for scenario in SCENARIOS]
