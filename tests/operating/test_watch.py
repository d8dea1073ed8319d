# SPDX-License-Identifier: Apache-2.0
"""Watchers: what they are sent, and that they harm nobody."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from faults.conftest import closing, start_server, target  # noqa: F401
from faults.support import eventually, stats
from harness.binary import HEADER
from harness.exchange import ask, begin_watch, receive_all, receive_until
from harness.fixtures import on_gpu
from harness.frame_servers import PORTS
from harness.servers import start_server as start
from packets import frames

START = re.compile(rb"ts=\d+\.\d+ gid=(\d+) (.*)\n")


def flood(client: socket.socket, commands: int = 500) -> None:
    """Sends gets of nine long keys, and waits for their replies."""
    keys = b" ".join(b"%0200d" % i for i in range(9))
    client.sendall((b"get " + keys + b"\r\n") * commands + b"mn\r\n")
    receive_until(client, b"MN\r\n")


class Watcher:
    """A connection that watches, and reads line by line."""

    def __init__(self, server, kinds: str = "") -> None:
        self.sock = server.connect()
        begin_watch(self.sock, kinds)
        self.unread = b""

    def line(self) -> bytes:
        while b"\n" not in self.unread:
            data = self.sock.recv(65536)
            assert data, "the server has closed the watcher"
            self.unread += data
        line, self.unread = self.unread.split(b"\n", 1)
        return line + b"\n"

    def event(self) -> str:
        """The next line without time and number."""
        line = self.line()
        match = START.fullmatch(line)
        assert match, line
        return match[2].decode()

    def event_of(self, port: int) -> str:
        """The next one of the client's connection from this port."""
        while f" rport={port} " not in (event := self.event()):
            pass
        return event

    def close(self) -> None:
        self.sock.close()


@pytest.fixture
def server(start_server):  # noqa: F811
    return start_server("-m", "64", "-t", "2", udp=True)


@pytest.fixture
def watch(server, closing):  # noqa: F811
    def start(kinds: str = "", of=server) -> Watcher:
        closing.append(Watcher(of, kinds))
        return closing[-1]

    return start


@pytest.fixture
def client(server, closing):  # noqa: F811
    closing.append(server.connect())
    return closing[-1]


def descriptor(server, sock: socket.socket) -> str:
    """The server's descriptor of a connection, by the client's port."""
    port = sock.getsockname()[1]
    text = ask(sock, b"stats conns\r\n", b"END\r\n").decode()
    return re.search(rf"STAT (\d+):addr tcp:127\.0\.0\.1:{port}\r", text)[1]


def test_lines_of_fetchers_and_mutations(watch, client, server):
    cfd = descriptor(server, client)
    watcher = watch("fetchers mutations deletions")

    def lines(request: bytes, end: bytes, count: int) -> list[str]:
        ask(client, request, end)
        events = [watcher.event() for _ in range(count)]
        return [re.sub(r"ttl=9\d\d\d\b", "ttl=10000", event) for event in events]  # some time has passed

    miss = f"status=not_found clsid=0 cfd={cfd} size=0"
    assert lines(b"get foo\r\n", b"END\r\n", 1) == [f"type=item_get key=foo {miss}"]
    assert lines(b"set foo 0 10000 5\r\nhello\r\n", b"STORED\r\n", 2) == [
        f"type=item_get key=foo {miss}",
        f"type=item_store key=foo status=stored cmd=set ttl=10000 clsid=1 cfd={cfd} size=5",
    ]
    found = f"type=item_get key=foo status=found clsid=1 cfd={cfd} size="
    assert lines(b"get foo bar\r\n", b"END\r\n", 2) == [
        f"{found}5",
        f"type=item_get key=bar {miss}",
    ]
    store = "type=item_store key={} status={} cmd={} ttl={} clsid=1 cfd=" + cfd + " size={}"
    assert lines(b"add foo 0 0 1\r\nx\r\n", b"NOT_STORED\r\n", 2) == [
        f"{found}5",
        store.format("foo", "not_stored", "add", 0, 1),
    ]
    assert lines(b"cas foo 0 0 1 1\r\nx\r\n", b"EXISTS\r\n", 2) == [
        f"{found}5",
        store.format("foo", "exists", "cas", 0, 1),
    ]
    assert lines(b"ms foo 2 MA\r\n!!\r\n", b"HD\r\n", 2) == [
        f"{found}5",
        store.format("foo", "stored", "append", 10000, 7),
    ]
    assert lines(b"touch foo 0\r\n", b"TOUCHED\r\n", 1) == [f"{found}7"]
    assert lines(b"delete foo\r\n", b"DELETED\r\n", 2) == [
        f"{found}7",
        "type=deleted key=foo cmd=delete clsid=1 size=7",
    ]
    assert lines(b"ma n N0 J42\r\n", b"HD\r\n", 3) == [
        f"type=item_get key=n {miss}",
        f"type=item_get key=n {miss}",
        store.format("n", "stored", "add", 0, 2),
    ]
    assert lines(b"md n\r\n", b"HD\r\n", 2)[1] == "type=deleted key=n cmd=md clsid=1 size=2"
    assert lines(b"set a%b 0 0 1\r\nx\r\n", b"STORED\r\n", 2)[1].startswith(
        "type=item_store key=a%25b "
    )
    big = b"set big 0 0 2000000\r\n" + bytes(2_000_000) + b"\r\n"
    assert lines(big, b"cache\r\n", 2) == [
        store.format("big", "too_large", "set", 0, 0),
        f"type=item_get key=big {miss}",
    ]


def test_expired_and_flushed(watch, client):
    watcher = watch()

    def is_seen_expired() -> bool:
        """Unless maintenance removes the item first."""
        ask(client, b"set e 0 -1 1\r\nx\r\nget e\r\n", b"END\r\n")
        return "status=expired" in [watcher.event(), watcher.event()][1]

    assert eventually(is_seen_expired)
    ask(client, b"set f 0 0 1\r\nx\r\n", b"STORED\r\n")
    watcher.event()
    ask(client, b"flush_all\r\n", b"OK\r\n")
    ask(client, b"get f\r\n", b"END\r\n")
    assert re.search("status=(flushed|not_found)", watcher.event())


def test_the_binary_protocol_and_udp(watch, client, server):
    watcher = watch()
    client.sendall(HEADER.pack(0x80, 0, 3, 0, 0, 0, 3, 0, 0) + b"foo")
    receive_until(client, b"Not found")
    assert watcher.event().startswith("type=item_get key=foo status=not_found clsid=0 cfd=")
    with server.connect_udp() as udp:
        udp.settimeout(60)
        udp.send(b"\0\1\0\0\0\1\0\0get over_udp\r\n")
        assert udp.recv(2048).endswith(b"END\r\n")
        assert watcher.event().startswith("type=item_get key=over_udp status=not_found")
        udp.send(b"\0\1\0\0\0\1\0\0watch\r\n")
        assert udp.recv(2048).endswith(b"CLIENT_ERROR not available over UDP\r\n")


def test_evictions(start_server, closing):  # noqa: F811
    server = start_server("-m", "8", "-t", "1")
    watcher = Watcher(server, "evictions")
    client = server.connect()
    closing += [watcher, client]
    value = bytes(4000)
    ask(
        client,
        b"".join(b"set key%d 0 0 4000 noreply\r\n%b\r\n" % (i, value) for i in range(4000))
        + b"mn\r\n",
    )
    for _ in range(10):
        assert re.fullmatch(
            r"type=eviction key=key\d+ fetch=no ttl=-1 la=\d+ clsid=1 size=4000", watcher.event()
        )


def test_connections(watch, server):
    watcher = watch("connevents")
    with server.connect() as sock:
        ip, port = sock.getsockname()
        cfd = descriptor(server, sock)
        where = f"rip={ip} rport={port} transport=tcp"
        assert watcher.event_of(port) == f"type=conn_new {where} cfd={cfd}"
    assert watcher.event_of(port) == f"type=conn_close {where} reason=normal cfd={cfd}"
    with server.connect() as sock:
        port = sock.getsockname()[1]
        sock.sendall(b"quit\r\n")
        assert receive_all(sock) == b""
        assert "type=conn_new" in watcher.event_of(port)
        assert "reason=normal" in watcher.event_of(port)


def test_why_connections_end(start_server, closing):  # noqa: F811
    server = start_server("-t", "1", "-o", "idle_timeout=1")
    watcher = Watcher(server, "connevents")
    closing.append(watcher)
    with server.connect() as sock:
        port = sock.getsockname()[1]
        assert "type=conn_new" in watcher.event_of(port)
        assert receive_all(sock) == b""
        # The watcher itself is not idle.
        assert "reason=idle_timeout" in watcher.event_of(port)
    with server.connect() as sock:
        port = sock.getsockname()[1]
        assert "type=conn_new" in watcher.event_of(port)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert "reason=error" in watcher.event_of(port)


@pytest.mark.parametrize(
    ("request_bytes", "reason"),
    [
        (b"quit\r\n", "normal"),
        (HEADER.pack(0x80, 0x07, 0, 0, 0, 0, 0, 0, 0), "normal"),
        (b"x" * 3000, "error"),  # no line is so long
        (HEADER.pack(0x80, 0, 1, 0, 0, 0, 1, 0, 0) + b"k" + b"\x81" + bytes(23), "error"),
        (HEADER.pack(0x80, 0, 300, 0, 0, 0, 300, 0, 0) + b"k" * 300, "error"),
    ],
    ids=["quit", "binary-quit", "long-line", "bad-magic", "long-key"],
)
def test_why_the_server_ends_a_connection(watch, server, request_bytes, reason):
    """`normal` where the client has asked for it, as memcached's."""
    watcher = watch("connevents")
    with server.connect() as sock:
        port = sock.getsockname()[1]
        sock.sendall(request_bytes)
        receive_all(sock)
        assert "type=conn_new" in watcher.event_of(port)
        assert f"reason={reason} " in watcher.event_of(port)


def test_unix_sockets(start_server, closing):  # noqa: F811
    server = start_server(unix=True)
    watcher = Watcher(server, "connevents")
    closing.append(watcher)
    with server.connect():
        opened = r"type=conn_new rip=unix rport=0 transport=local cfd=\d+"
        while not re.fullmatch(opened, event := watcher.event()):
            assert event.startswith("type=conn_close rip=unix rport=0 transport=local reason=")


def test_commands(watch, client, server):
    cfd = descriptor(server, client)
    watcher = watch("rawcmds")
    ask(client, b"get a b\r\nset k 0 0 1\r\nx\r\nmg k v\r\n", b"VA 1\r\nx\r\n")
    assert [watcher.event() for _ in range(3)] == [
        f"<{cfd} get a b",
        f"<{cfd} set k 0 0 1",
        f"<{cfd} mg k v",
    ]


def test_the_command(start_server, closing, server):  # noqa: F811
    client = server.connect()
    closing.append(client)
    for words in ("nonsense", "fetchers nonsense", "noreply", "Fetchers"):
        assert ask(client, f"watch {words}\r\n".encode()) == b"ERROR\r\n"
    answers = b"MN\r\nERROR cannot pipeline other commands before watch\r\nMN\r\n"
    client.sendall(b"mn\r\nwatch\r\nmn\r\n")
    assert receive_until(client, answers) == answers
    for word in ("sysevents", "proxyreqs", "proxyevents", "proxyuser"):
        closing.append(Watcher(server, word))
    forbids = start_server("-W")
    with forbids.connect() as sock:
        assert ask(sock, b"watch\r\n") == b"CLIENT_ERROR watch commands not allowed\r\n"
    only_reads = start_server("-o", "no_admin")
    with only_reads.connect() as sock:
        assert ask(sock, b"watch\r\n") == b"CLIENT_ERROR not allowed here\r\n"


def test_a_watcher_answers_nothing_more(watch, server):
    watcher = watch()
    watcher.sock.sendall(b"version\r\nquit\r\n")
    with server.connect() as client:
        ask(client, b"get a\r\n", b"END\r\n")
    assert "key=a" in watcher.event()


def test_their_number(watch, server):
    watchers = [watch() for _ in range(20)]
    with server.connect() as sock:
        full = b"WATCHER_TOO_MANY log watcher limit reached\r\n"
        assert ask(sock, b"watch\r\n") == full
        assert stats(server)["log_watchers"] == "20"
        watchers[0].close()
        assert eventually(lambda: ask(sock, b"watch\r\n") == b"OK\r\n")


@pytest.mark.parametrize("way", ["close", "half-close", "reset"])
def test_one_that_leaves_is_forgotten(watch, server, way):
    watcher = watch("fetchers")
    if way == "half-close":
        watcher.sock.shutdown(socket.SHUT_WR)
        assert receive_all(watcher.sock) == b""
    if way == "reset":
        watcher.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    watcher.close()
    assert eventually(lambda: stats(server)["log_watchers"] == "0")
    assert eventually(lambda: stats(server)["curr_connections"] == "1")


def test_statistics_and_the_state_of_its_connection(watch, client, server):
    watcher = watch()
    for _ in range(10):
        ask(client, b"get a\r\n", b"END\r\n")
        watcher.event()
    values = stats(server)
    assert values["log_worker_written"] == values["log_watcher_sent"] == "10"
    assert values["log_worker_dropped"] == values["log_watcher_skipped"] == "0"
    assert values["log_watchers"] == "1"
    assert b"state conn_watch\r\n" in ask(client, b"stats conns\r\n", b"END\r\n")


def test_numbers_rise_and_are_shared(watch, client):
    watchers = [watch(), watch()]
    seen = []
    for i in range(100):
        ask(client, b"get key%d\r\n" % i, b"END\r\n")
        lines = [watcher.line() for watcher in watchers]
        assert lines[0] == lines[1]
        seen.append(int(START.fullmatch(lines[0])[1]))
    assert seen == sorted(set(seen))


def test_one_that_does_not_read_is_told_what_it_missed(start_server, closing):  # noqa: F811
    server = start_server("-t", "2", "-o", "watcher_logbuf_size=1,worker_logbuf_size=1024")
    deaf = Watcher(server)
    client = server.connect()
    closing += [deaf, client]

    def skipped() -> int:
        flood(client)
        return int(stats(server)["log_watcher_skipped"])

    assert eventually(lambda: skipped() > 0, 120)
    # Nobody was closed: the two, and the one that asks.
    assert eventually(lambda: stats(server)["curr_connections"] == "3")
    # As it reads, there is space for lines again: the first one says how many are missing.
    while not (line := deaf.line()).startswith(b"skipped="):
        assert START.fullmatch(line)
        ask(client, b"get a\r\n", b"END\r\n")
    assert int(line.removeprefix(b"skipped=")) > 0
    assert START.fullmatch(deaf.line())


def test_a_stop_does_not_wait_for_watchers(target):  # noqa: F811
    server = start(target, ("-t", "2"))
    try:
        watchers = [Watcher(server), Watcher(server, "connevents")]
        server.process.send_signal(signal.SIGUSR1)
        for watcher in watchers:
            assert b"item_get" not in receive_all(watcher.sock)
            watcher.close()
        assert server.wait_exit() == 0
    finally:
        server.stop()


@pytest.fixture(params=["launch", "persistent", "edge"])
def gpu_options(request, target, monkeypatch):  # noqa: F811
    return on_gpu(target, request.param, monkeypatch)


def test_connections_and_commands_of_a_gpu(start_server, closing, gpu_options):  # noqa: F811
    server = start_server(*gpu_options)
    client = server.connect()
    closing.append(client)
    watcher = Watcher(server, "connevents rawcmds")
    closing.append(watcher)
    assert ask(client, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
    cfd = descriptor(server, client)
    assert watcher.event() == f"<{cfd} set k 0 0 1"
    assert watcher.event() == f"<{cfd} stats conns"
    with server.connect() as sock:
        assert "type=conn_new" in watcher.event_of(sock.getsockname()[1])


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
    numbers, value = range(8_000), bytes(1000)
    stored = store_keys(client, numbers, value, 5000)
    while stats(server)["evictions"] == "0":
        numbers = range(numbers.stop + 1000)
        stored |= store_keys(client, range(numbers.stop - 1000, numbers.stop), value, 5000)
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
        assert int(age) < 1000 and size == "1000"


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


def test_stall_timeout_spares_watchers(start_server, closing):  # noqa: F811
    server = start_server("-t", "1", "-o", "stall_timeout=1,watcher_logbuf_size=1")
    deaf = Watcher(server)
    client = server.connect()
    closing += [deaf, client]

    def stands_still() -> bool:
        flood(client)
        return int(stats(server)["log_watcher_skipped"]) > 0

    assert eventually(stands_still, 120)
    with contextlib.suppress(AssertionError):
        eventually(lambda: stats(server)["connections_stall_timeouts"] != "0", 4)
    assert stats(server)["connections_stall_timeouts"] == "0"
    assert stats(server)["log_watchers"] == "1"
