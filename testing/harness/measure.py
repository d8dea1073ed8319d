# SPDX-License-Identifier: Apache-2.0
"""Measures a server's capacity, hit ratio and memory at a given -m, through its protocol.

Each function starts a server of its own, ends it, and returns a flat dict. The comparisons that
must hold are tests/memory; bench/memory/run makes the long tables.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from harness import exchange
from harness.patience import PATIENCE_S
from harness.programs import find_replay_client
from harness.servers import Server, Target, start_server

MIB = 1 << 20
CLIENT_TIMEOUT_S = 900  # ends a client that hangs
ROUND = 4096  # requests of a client, of several at a time
KEYS = 2_000_000  # of the hit ratio's request stream, over all clients
ITEM_OVERHEAD = 50  # bytes that a server may well add to an item: only to choose how many to offer

# What warpcached may occupy beyond -m: bench/memory/README.md states it.
THREADS = 4  # -t, of both servers
OVERHEAD_MIB = 6
OVERHEAD_MIB_THREAD = 2.5
COPIES_MIB_THREAD = 4  # of values above 16 KB, while a quarter of the memory is being sent uncopied
OVERHEAD_SHARE = 1 / 256  # of -m
CONNECTION_KIB = 2  # one that waits for its client
BUSY_CONNECTION_KIB = 80  # one in the middle of a request
# A thread's buffers when a burst has used all of them: input, replies, frames, spans.
BURST_KIB = (4 + 2 + 1 + 2) * 1024


class ClientError(Exception):
    """The replay client found an error of the server."""


def start_client(server: Server, command: str, **options) -> subprocess.Popen:
    arguments = [str(find_replay_client()), command, "--port", str(server.port)]
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        arguments += [flag] if value is True else [flag, str(value)]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def keep_together(processes: list[subprocess.Popen], rounds: int) -> None:
    """Runs clients with the option `round` in step: each round starts when all clients have reached it."""
    for _ in range(rounds):
        for process in processes:
            process.stdout.read(1)  # the end of its output, where it has failed: finish_client() tells
        for process in processes:
            with suppress(BrokenPipeError):
                process.stdin.write(".")
                process.stdin.flush()


def finish_client(process: subprocess.Popen) -> dict:
    """The client's report. Wrong values and strange replies are errors, whatever was measured."""
    try:
        out, error = process.communicate(timeout=CLIENT_TIMEOUT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode != 0:
        raise ClientError(f"{' '.join(process.args)}: {error.strip()}")
    report = json.loads(out)
    if report["wrong"] or report["refused"]:
        raise ClientError(f"{' '.join(process.args)}: {out.strip()}")
    return report


def client(server: Server, command: str, **options) -> dict:
    return finish_client(start_client(server, command, **options))


def sum_up(reports: list[dict]) -> dict:
    numbers = [name for name, value in reports[0].items() if isinstance(value, int)]
    return {name: sum(report[name] for report in reports) for name in numbers}


@contextmanager
def running(target: Target, megabytes: int, *options: str, udp: bool = False):
    server = start_server(target, ["-m", str(megabytes), "-t", str(THREADS), *options], udp=udp)
    try:
        yield server
        if not server.alive():
            raise ClientError(f"{target.name} died: {server.log()[-2000:]}")
    finally:
        server.stop()


def ask(server: Server, line: str, end: bytes = b"\r\n") -> str:
    with server.connect() as sock:
        return exchange.ask(sock, line.encode() + b"\r\n", end).decode()


def stats(server: Server) -> dict[str, str]:
    with server.connect() as sock:
        return exchange.ask_stats(sock)


def resident_kib(server: Server) -> dict[str, int]:
    """What the process occupies now, and has occupied at most."""
    fields = {}
    for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            fields["rss_kib" if name == "VmRSS" else "peak_kib"] = int(value.split()[0])
    return fields


def allowed_kib(
    megabytes: int, connections: int = 0, busy_connections: int = 0, large_values: bool = False
) -> int:
    """The most that warpcached may occupy."""
    memory = megabytes * 1024
    overhead = (OVERHEAD_MIB + THREADS * OVERHEAD_MIB_THREAD) * 1024 + memory * OVERHEAD_SHARE
    clients = connections * CONNECTION_KIB + busy_connections * BUSY_CONNECTION_KIB
    copies = THREADS * COPIES_MIB_THREAD * 1024 if large_values else 0
    return int(memory + overhead + clients + copies)


def eventually(check, time_s_max: float = PATIENCE_S) -> bool:
    deadline = time.monotonic() + time_s_max
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@dataclass(frozen=True)
class Shape:
    """A kind of item. `about` is its mean size in bytes, key and value."""

    name: str
    sizes: str
    about: int

    def offer(self, megabytes: int) -> int:
        """Half as many items again as may fit."""
        return megabytes * MIB * 3 // 2 // (self.about + ITEM_OVERHEAD)


SMALL = Shape("16 B keys, 32 B values", "fixed:16:32", 48)
KILOBYTE = Shape("16 B keys, 1 KB values", "fixed:16:1024", 1040)
ETC = Shape("ETC", "etc", 235)
MIXED = Shape("20 B keys, values of 10 B to 4 KB", "uniform:20:10:4096", 2073)
TWENTY_KILOBYTES = Shape("20 B keys, 20 KB values", "fixed:20:20000", 20020)
HUGE = Shape("20 B keys, 900 KB values", "fixed:20:900000", 900020)
LARGE = Shape("20 B keys, values of 50 KB to 900 KB", "uniform:20:50000:900000", 475020)


def hit_ratio(
    target: Target, megabytes: int, requests: int, clients: int = 1, options: tuple = ()
) -> dict:
    """A look-aside cache under Zipf 0.99; the first half of the requests only warms it up.

    Several clients have keys of their own, of the same number in all. None gets far ahead of the others,
    whose items would be evicted for want of use.
    """
    requests_each = requests // clients
    with running(target, megabytes, *options) as server:
        begin = time.monotonic()
        processes = [
            start_client(
                server,
                "replay",
                seed=1 + index,
                keys=KEYS // clients,
                requests=requests_each,
                warm_up=requests_each // 2,
                round=ROUND if clients > 1 else 0,
            )
            for index in range(clients)
        ]
        if clients > 1:
            keep_together(processes, -(-requests_each // ROUND))
        reports = [finish_client(process) for process in processes]
        seconds = time.monotonic() - begin
        numbers = stats(server)
        gets = sum(report["counted_gets"] for report in reports)
        hits = sum(report["counted_gets"] * report["hit_ratio"] for report in reports)
        return {
            "measure": "hit_ratio",
            "server": target.name,
            "megabytes": megabytes,
            "clients": clients,
            "requests": requests,
            "hit_ratio": round(hits / gets, 5),
            "curr_items": int(numbers["curr_items"]),
            "evictions": int(numbers["evictions"]),
            "out_of_memory": sum(report["out_of_memory"] for report in reports),
            "seconds": round(seconds, 2),
            **resident_kib(server),
        }


def capacity(target: Target, megabytes: int, shape: Shape) -> dict:
    """Items held when the server first evicts, and after half as many again."""
    offered = shape.offer(megabytes)
    with running(target, megabytes) as server:
        first = client(server, "fill", sizes=shape.sizes, last=offered, until_eviction=True)
        client(server, "fill", sizes=shape.sizes, first=first["stored"], last=offered)
        held = client(server, "count", sizes=shape.sizes, last=offered)
        return {
            "measure": "capacity",
            "server": target.name,
            "megabytes": megabytes,
            "shape": shape.name,
            "offered": offered,
            "evicted": first["evicting"],
            "items_at_first_eviction": first["curr_items"],
            "items_held": held["hits"],
            **resident_kib(server),
        }


def resident(target: Target, megabytes: int, shape: Shape) -> dict:
    """Memory occupied when several clients have stored more than fits and read it all."""
    offered, clients = shape.offer(megabytes), 4

    def everywhere(command: str) -> dict:
        share = [offered * index // clients for index in range(clients + 1)]
        processes = [
            start_client(server, command, sizes=shape.sizes, first=first, last=last)
            for first, last in pairwise(share)
        ]
        return sum_up([finish_client(process) for process in processes])

    with running(target, megabytes) as server:
        filled, held = everywhere("fill"), everywhere("count")
        return {
            "measure": "resident",
            "server": target.name,
            "megabytes": megabytes,
            "shape": shape.name,
            "items_held": held["hits"],
            "out_of_memory": filled["out_of_memory"],
            "allowed_kib": allowed_kib(megabytes, large_values=shape is LARGE),
            **resident_kib(server),
        }


def at_once(target: Target, megabytes: int, shape: Shape, count: int) -> dict:
    """Gets of everything at once, of large values that fit well."""
    with running(target, megabytes) as server:
        filled = client(server, "fill", sizes=shape.sizes, last=count)
        read = client(server, "count", sizes=shape.sizes, last=count)
        return {
            "measure": "at_once",
            "server": target.name,
            "megabytes": megabytes,
            "shape": shape.name,
            "offered": count,
            "stored": filled["stored"],
            "hits": read["hits"],
            "evictions": int(stats(server)["evictions"]),
            "allowed_kib": allowed_kib(megabytes, large_values=shape is LARGE),
            **resident_kib(server),
        }


def connections(target: Target, megabytes: int, idle: int, busy: int) -> dict:
    """Memory occupied by a full server with many clients: `idle` ones that have asked something
    before, and `busy` ones that have sent half of a set and do not go on."""
    most = idle + busy + 100
    with running(target, megabytes, "-c", str(most)) as server:
        client(server, "fill", sizes=ETC.sizes, last=ETC.offer(megabytes))
        before = resident_kib(server)
        opened: list[socket.socket] = []
        try:
            for index in range(idle):
                sock = server.connect()
                opened.append(sock)
                sock.sendall(b"set idle%d 0 0 500\r\n%s\r\n" % (index, b"x" * 500))
            for sock in opened:
                if sock.recv(100) != b"STORED\r\n":
                    raise ClientError("a set among many connections failed")
            with_idle = resident_kib(server)
            for index in range(busy):
                sock = server.connect()
                opened.append(sock)
                sock.sendall(b"set busy%d 0 0 60000\r\n%s" % (index, b"x" * 30000))
            time.sleep(0.5)
            ask(server, "version")
            with_busy = resident_kib(server)
        finally:
            for sock in opened:
                sock.close()
        return {
            "measure": "connections",
            "server": target.name,
            "megabytes": megabytes,
            "idle": idle,
            "busy": busy,
            "before_kib": before["rss_kib"],
            "with_idle_kib": with_idle["rss_kib"],
            "with_busy_kib": with_busy["rss_kib"],
            "peak_kib": with_busy["peak_kib"],
            "allowed_kib": allowed_kib(megabytes, idle, busy),
        }


def datagrams(target: Target, commands: int, datagrams: int, rounds: int) -> dict:
    """The memory that bursts of datagrams, each of `commands` empty lines, leave occupied. One thread."""
    with running(target, 64, "-t", "1", udp=True) as server:
        before = resident_kib(server)["rss_kib"]
        replies = 0
        with server.connect_udp() as sock:
            sock.settimeout(0.2)
            for _ in range(rounds):
                for _ in range(datagrams):
                    sock.send(b"\0\1\0\0\0\1\0\0" + b"\n" * commands)
                try:
                    while sock.recv(2048):
                        replies += 1
                except TimeoutError:
                    pass
        ask(server, "mn", b"MN\r\n")  # it is done with them
        return {
            "name": "datagrams",
            "target": target.name,
            "commands": commands,
            "replies": replies,
            "grown_kib": resident_kib(server)["rss_kib"] - before,
            "allowed_kib": BURST_KIB,
        }


def no_eviction(target: Target, megabytes: int) -> dict:
    """-M: sets until memory is full, then deletes and sets again; the same with expiry."""
    shape, other = KILOBYTE, TWENTY_KILOBYTES
    fit = shape.offer(megabytes)
    with running(target, megabytes, "-M") as server:
        filled = client(server, "fill", sizes=shape.sizes, last=fit)
        held = client(server, "count", sizes=shape.sizes, last=fit)
        removed = client(server, "remove", sizes=shape.sizes, last=fit, step=2)
        after_delete = client(server, "fill", sizes=shape.sizes, first=fit, last=fit + fit // 2)
        kept = client(server, "count", sizes=shape.sizes, last=fit)
        evictions = int(stats(server)["evictions"])
    with running(target, megabytes, "-M") as server:
        client(server, "fill", sizes=shape.sizes, last=fit, expiry=2)
        time.sleep(3.5)
        after_expiry = client(server, "fill", sizes=shape.sizes, first=fit, last=2 * fit)
    with running(target, megabytes, "-M") as server:
        client(server, "fill", sizes=shape.sizes, last=fit)
        client(server, "remove", sizes=shape.sizes, last=fit)
        resized = client(server, "fill", sizes=other.sizes, last=other.offer(megabytes))
    return {
        "measure": "no_eviction",
        "server": target.name,
        "megabytes": megabytes,
        "stored": filled["stored"],
        "out_of_memory": filled["out_of_memory"],
        "held": held["hits"],
        "removed": removed["removed"],
        "stored_after_delete": after_delete["stored"],
        "out_of_memory_after_delete": after_delete["out_of_memory"],
        "kept": kept["hits"],
        "evictions": evictions,
        "stored_after_expiry": after_expiry["stored"],
        "share_refilled_larger": round(
            resized["stored"] * other.about / (filled["stored"] * shape.about), 3
        ),
    }


def recycling(target: Target, megabytes: int, rounds: int) -> dict:
    """-M: several clients fill two thirds of memory with what expires at once, again and again."""
    clients, shape = 4, KILOBYTE
    share = shape.offer(megabytes) * 4 // 9 // clients
    row = {"measure": "recycling", "server": target.name, "megabytes": megabytes, "rounds": rounds}
    with running(target, megabytes, "-M") as server:
        reports = []
        for _ in range(rounds):
            processes = [
                start_client(
                    server, "fill", sizes=shape.sizes, seed=1 + index, last=share + index, expiry=1
                )
                for index in range(clients)
            ]
            reports += [finish_client(process) for process in processes]
            time.sleep(2.2)
        total = sum_up(reports)
        return {**row, "stored": total["stored"], "out_of_memory": total["out_of_memory"]}


def limit_changes(target: Target, megabytes: int) -> dict:
    """cache_memlimit at run time: down to a half, then up to one and a half."""
    half, more = megabytes // 2, megabytes * 3 // 2
    offered = ETC.offer(more)
    row = {"measure": "limit_changes", "server": target.name, "megabytes": megabytes}

    def note(name: str, server: Server, last: int) -> None:
        held = client(server, "count", last=last)
        row[f"items_{name}"] = held["hits"]
        row[f"rss_{name}_kib"] = resident_kib(server)["rss_kib"]

    with running(target, megabytes) as server:
        client(server, "fill", last=offered)
        note("full", server, offered)
        row["reply_down"] = ask(server, f"cache_memlimit {half}").strip()
        eventually(lambda: resident_kib(server)["rss_kib"] <= allowed_kib(half))
        note("down", server, offered)
        row["allowed_down_kib"] = allowed_kib(half)
        client(server, "fill", first=offered, last=2 * offered)
        note("down_refilled", server, 2 * offered)
        row["limit_down"] = int(stats(server)["limit_maxbytes"])
        row["reply_up"] = ask(server, f"cache_memlimit {more}").strip()
        client(server, "fill", last=2 * offered)
        note("up", server, 2 * offered)
        row["allowed_up_kib"] = allowed_kib(more)
        row["limit_up"] = int(stats(server)["limit_maxbytes"])
    return row
