# SPDX-License-Identifier: Apache-2.0
"""Watchers: what they are sent, and that they harm nobody."""

from __future__ import annotations

import contextlib
import re
import signal
import socket

import pytest
from faults.conftest import closing, start_server, target  # noqa: F401
from faults.support import eventually, stats
from harness.binary import HEADER
from harness.exchange import ask, receive_all, receive_until
from harness.patience import PATIENCE_S
from harness.servers import start_server as start
from operating.watching import START, Watcher, descriptor, flood


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
        udp.settimeout(PATIENCE_S)
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


@pytest.mark.not_on_gpu(reason="a GPU's store evicts when it needs the space")
def test_one_store_evicts_in_a_full_server(start_server, closing):  # noqa: F811
    """Also where it does not fill a segment: the watcher does not wait for more stores."""
    server = start_server("-m", "16", "-t", "1")
    client = server.connect()
    value = bytes(1000)
    stores = b"".join(b"set key%d 0 0 1000 noreply\r\n%b\r\n" % (i, value) for i in range(20_000))
    ask(client, stores + b"mn\r\n")
    watcher = Watcher(server, "mutations evictions")
    closing += [watcher, client]
    ask(client, b"set one 0 0 1000\r\n" + value + b"\r\n")
    seen = set()
    while seen != {"item_store", "eviction"}:
        seen |= {watcher.event().split(" ")[0].removeprefix("type=")} - {"item_get"}


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

    assert eventually(lambda: skipped() > 0, PATIENCE_S)
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


def test_stall_timeout_spares_watchers(start_server, closing):  # noqa: F811
    server = start_server("-t", "1", "-o", "stall_timeout=1,watcher_logbuf_size=1")
    deaf = Watcher(server)
    client = server.connect()
    closing += [deaf, client]

    def stands_still() -> bool:
        flood(client)
        return int(stats(server)["log_watcher_skipped"]) > 0

    assert eventually(stands_still, PATIENCE_S)
    with contextlib.suppress(AssertionError):
        eventually(lambda: stats(server)["connections_stall_timeouts"] != "0", 4)
    assert stats(server)["connections_stall_timeouts"] == "0"
    assert stats(server)["log_watchers"] == "1"
