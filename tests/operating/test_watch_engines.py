# SPDX-License-Identifier: Apache-2.0
"""Watchers of each engine: a server on a GPU tells what one on the CPU tells, and both tell what they evict."""

from __future__ import annotations

import re
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from faults.conftest import closing, start_server, target  # noqa: F401
from faults.support import stats
from harness.binary import HEADER
from harness.exchange import ask, receive_until
from harness.fixtures import on_gpu
from harness.frame_servers import PORTS
from harness.servers import start_server as start
from operating.watching import Watcher, descriptor
from packets import frames


@pytest.fixture(params=["launch", "persistent", "edge"])
def gpu_options(request, target, monkeypatch):  # noqa: F811
    return on_gpu(target, request.param, monkeypatch)


def test_connections_and_commands_of_a_gpu(start_server, closing, gpu_options):  # noqa: F811
    server = start_server(*gpu_options)
    client = server.connect()
    closing.append(client)
    cfd = descriptor(server, client)  # answered, so its thread has reported it before there is a watcher
    watcher = Watcher(server, "connevents rawcmds")
    closing.append(watcher)
    assert ask(client, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert descriptor(server, client) == cfd
    assert watcher.event() == f"<{cfd} set k 0 0 1"
    assert watcher.event() == f"<{cfd} stats conns"
    with server.connect() as sock:
        assert "type=conn_new" in watcher.event_of(sock.getsockname()[1])


VALUE_BYTES = 4000  # of keys that are evicted
EVICTION = re.compile(r"type=eviction key=(\S+) fetch=(no|yes) ttl=(-?\d+) la=(\d+) clsid=1 size=(\d+)")


def store_keys(client: socket.socket, numbers: range, value: bytes, exptime: int = 0) -> set[str]:
    """Stores keys and reads every second one; those that were stored. A slow machine may refuse some for want of memory."""
    stored = set()
    for first in range(numbers.start, numbers.stop, 100):
        some = range(first, min(first + 100, numbers.stop))
        sets = [b"set key%d 0 %d %d\r\n%b\r\n" % (i, exptime * (i % 2), len(value), value) for i in some]
        replies = ask(client, b"".join(sets) + b"mn\r\n", b"MN\r\n").decode().splitlines()
        assert len(replies) == len(some) + 1
        stored |= {f"key{i}" for i, reply in zip(some, replies, strict=False) if reply == "STORED"}
        ask(client, b"".join(b"mg key%d\r\n" % i for i in some if i % 4 < 2) + b"mn\r\n", b"MN\r\n")
    return stored


def there_are(client: socket.socket, numbers: range) -> set[str]:
    """Those of the keys that are there; nobody notices that they are read."""
    there = set()
    for first in range(numbers.start, numbers.stop, 100):
        some = range(first, min(first + 100, numbers.stop))
        text = ask(client, b"".join(b"mg key%d k u\r\n" % i for i in some) + b"mn\r\n", b"MN\r\n").decode()
        there |= set(re.findall(r"^HD k(\S+)", text, re.MULTILINE))
    return there


def check_evictions(server, closing) -> None:  # noqa: F811
    """What a GPU evicts is its own choice: each key that is gone was named once, and none that is there."""
    watcher = Watcher(server, "evictions")
    client = server.connect()
    closing += [watcher, client]
    numbers, value = range(2_000), bytes(VALUE_BYTES)
    stored = store_keys(client, numbers, value, 5000)
    while stats(server)["evictions"] == "0":
        numbers = range(numbers.stop + 200)
        stored |= store_keys(client, range(numbers.stop - 200, numbers.stop), value, 5000)
    events: list[re.Match] = []
    there: set[str] = set()
    # Maintenance may go on meanwhile.
    while len(events) < int(stats(server)["evictions"]):
        while len(events) < int(stats(server)["evictions"]):
            events.append(EVICTION.fullmatch(watcher.event()))
        there = there_are(client, numbers)
    values = stats(server)
    assert values["log_worker_dropped"] == values["log_watcher_skipped"] == "0"
    named = [event[1] for event in events]
    assert len(named) == len(set(named))
    assert set(named) == stored - there
    for key, fetched, ttl, age, size in (event.groups() for event in events):
        number = int(key.removeprefix("key"))
        assert fetched == "no" or number % 4 < 2  # it may have been evicted before it was read
        assert 4000 < int(ttl) <= 5000 if number % 2 else ttl == "-1"
        assert int(age) < 1000 and int(size) == VALUE_BYTES


def test_evictions_of_a_gpu(start_server, closing, gpu_options):  # noqa: F811
    server = start_server(*gpu_options, "-m", "8", "-t", "2", "-o", "worker_logbuf_size=16384,watcher_logbuf_size=16384")
    check_evictions(server, closing)


def test_evictions_of_a_cpu(start_server, closing):  # noqa: F811
    options = "worker_logbuf_size=16384,watcher_logbuf_size=16384"
    check_evictions(start_server("--engine=cpu", "-m", "8", "-t", "2", "-o", options), closing)


def test_frames_that_the_gpu_alone_sees(request, start_server, closing, target, monkeypatch):  # noqa: F811
    options = on_gpu(target, "edge", monkeypatch)
    folder = Path(tempfile.mkdtemp(prefix="warpcache-test-", dir="/dev/shm"))
    request.addfinalizer(lambda: shutil.rmtree(folder))
    server = start_server(*options, f"--frames=peer:{folder}/frames")
    client = server.connect()
    closing.append(client)
    for kinds in ("", " mutations", " connevents deletions"):
        answer = b"CLIENT_ERROR requests in frames that the GPU alone sees cannot be watched\r\n"
        assert ask(client, b"watch%b\r\n" % kinds.encode()) == answer
    closing.append(Watcher(server, "connevents"))


TEXT = [
    b"get a",
    b"set a 5 0 1\r\nx",
    b"add a 0 0 1\r\ny",
    b"add new 0 0 1\r\ny",
    b"replace a 0 1000 2\r\nyy",
    b"replace none 0 0 1\r\ny",
    b"append a 0 0 1\r\nz",
    b"prepend a 0 0 3\r\nzzz",
    b"append none 0 0 1\r\nz",
    b"cas a 0 0 1 99\r\nx",
    b"cas none 0 0 1 99\r\nx",
    b"get a none new",
    b"gets none a",
    b"gat 2000 a none",
    b"touch a 3000",
    b"touch none 3000",
    b"incr a 1",
    b"set n 0 0 2\r\n99",
    b"incr n 1",
    b"decr n 50",
    b"incr none 1",
    b"delete n",
    b"delete n",
    b"set q 0 0 1 noreply\r\nx",
    b"add q 0 0 1 noreply\r\nx",
    b"incr q 1 noreply",
    b"delete q noreply",
    b"mg a v t",
    b"mg none v",
    b"mg vivid N6000 v",
    b"ms a 2 T9000\r\nab",
    b"ms a 2 ME\r\nab",
    b"ms a 2 MA\r\nab",
    b"ms none 2 MA\r\nab",
    b"ms joined 2 MA N7000\r\nab",
    b"ms a 1 C1\r\nx",
    b"ms a 1 C1 I\r\nx",
    b"ms a 1 MR\r\nx",
    b"md a I T3000",
    b"mg a v c",
    b"md a x",
    b"mg a v s",
    b"md a q",
    b"md a C5",
    b"ma c N0 J42 D1",
    b"ma c D5 t v",
    b"ma c MD",
    b"ma none",
    b"md c",
    b"ms YWJj 1 b\r\nx",
    b"mg YWJj b v k",
    b"me a",
    b"me none",
    b"md YWJj b",
    b"ms q 1 q\r\nx",
    b"mg none q v",
    b"md q q",
    b"set large 0 0 100000\r\n" + bytes(100_000),
    b"get large none",
    b"append large 0 0 10000\r\n" + bytes(10_000),
    b"mg large v",
    b"set big 0 0 2000000\r\n" + bytes(2_000_000),
    b"set a%b 0 0 1\r\nx",
    b"get %d" % 10**260,
    b"set bad 0 0 1\r\nxyz",
    b"verbosity 1",
    b"delete new",
]


def binary(opcode: int, key: bytes, value: bytes = b"", extras: bytes = b"", cas: int = 0) -> bytes:
    size = len(key) + len(value) + len(extras)
    return HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, size, 0, cas) + extras + key + value


NOOP, DELETE = 0x0A, 0x04
BINARY = [
    binary(0x00, b"b"),
    binary(0x01, b"b", b"value", bytes(8)),
    binary(0x02, b"b", b"value", bytes(8)),
    binary(0x03, b"b", b"other", bytes(6) + b"\x20\x00"),
    binary(0x01, b"b", b"value", bytes(8), cas=99),
    binary(0x11, b"quiet", b"value", bytes(8)),  # setq
    binary(0x09, b"none") + binary(0x0D, b"b"),  # getq, getkq
    binary(0x05, b"count", extras=bytes(7) + b"\1" + bytes(7) + b"\x63" + bytes(4)),
    binary(0x06, b"count", extras=bytes(7) + b"\1" + bytes(8) + bytes(4)),
    binary(0x0E, b"b", b"tail"),
    binary(0x1C, b"b", extras=bytes(4)),
    binary(0x1D, b"b", extras=bytes(4)),
    binary(0x14, b"quiet"),
    binary(DELETE, b"b"),
]


def normalised(event: str) -> str:
    """Descriptors differ, and a second may pass meanwhile."""
    event = re.sub(r"ttl=([1-9]\d+)", lambda found: f"ttl={round(int(found[1]) / 100) * 100}", event)
    return re.sub(r"cfd=\d+", "cfd=N", event)


def told(server, closing) -> list[str]:  # noqa: F811
    """The lines of these commands: one by one, then all at once."""
    watcher = Watcher(server, "fetchers mutations deletions")
    text, other = server.connect(), server.connect()
    closing += [watcher, text, other]
    events = []
    for commands, between, sock, end, last, replied in (
        (TEXT, b"\r\n", text, b"mn\r\n", b"get end\r\n", b"MN\r\n"),
        (BINARY, b"", other, binary(NOOP, b""), binary(0x00, b"end"), HEADER.pack(0x81, NOOP, 0, 0, 0, 0, 0, 0, 0)),
    ):
        for bursts in (commands, [between.join(commands)]):
            for burst in [*bursts, last.removesuffix(between)]:
                sock.sendall(burst + between + end)
                receive_until(sock, replied)
            # Of one connection: those of several threads have no order among each other.
            events.append(normalised(watcher.event()))
            while not events[-1].startswith("type=item_get key=end "):
                events.append(normalised(watcher.event()))
    return events


def test_a_gpu_tells_what_a_cpu_tells(start_server, closing, gpu_options):  # noqa: F811
    ours = told(start_server(*gpu_options), closing)
    assert ours == told(start_server("--engine=cpu", "-m", "64", "-t", "2"), closing)


def test_frames(target, closing, gpu_options, tmp_path):  # noqa: F811
    """Requests in Ethernet frames: nothing names their client."""
    server = PORTS["pcap"](target, tmp_path, gpu_options)
    try:
        watcher = Watcher(server.server, "fetchers mutations deletions")
        closing.append(watcher)
        for number, (text, reply) in enumerate(
            (
                (b"get f\r\n", b"END\r\n"),
                (b"set f 0 0 1\r\nx\r\n", b"STORED\r\n"),
                (b"gets none f\r\n", None),
                (b"set f 0 1000 2 noreply\r\nxx\r\nget f\r\n", b"VALUE f 0 2\r\nxx\r\nEND\r\n"),
                (b"delete f\r\n", b"DELETED\r\n"),
            )
        ):
            server.send([frames.request(text, frames.PLAIN, number)])
            replies = server.replies(1)
            assert reply is None or replies == frames.replies(reply, frames.PLAIN, number)
        miss, hit = "status=not_found clsid=0 cfd=-1 size=0", "status=found clsid=1 cfd=-1 size="
        store = "type=item_store key=f status=stored cmd=set ttl={} clsid=1 cfd=-1 size={}"
        assert [watcher.event() for _ in range(10)] == [
            f"type=item_get key=f {miss}",
            f"type=item_get key=f {miss}",
            store.format(0, 1),
            f"type=item_get key=none {miss}",
            f"type=item_get key=f {hit}1",
            f"type=item_get key=f {hit}1",
            store.format(1000, 2),
            f"type=item_get key=f {hit}2",
            f"type=item_get key=f {hit}2",
            "type=deleted key=f cmd=delete clsid=1 size=2",
        ]
    finally:
        watcher.close()
        assert server.stop() == 0
