# SPDX-License-Identifier: Apache-2.0
"""stats latency, hotkeys, bigkeys and slowlog: off by default, right when on, refused where keys or changes are."""

from __future__ import annotations

import pytest
from faults.conftest import start_server, target  # noqa: F401
from faults.support import eventually, fetch, store
from harness.exchange import ask, ask_stats
from harness.patience import PATIENCE_S


@pytest.fixture
def server(start_server):  # noqa: F811
    return start_server("-t", "2", udp=True)


def fields(text: str) -> dict[str, str]:
    return dict(field.split("=", 1) for field in text.split(" "))


def test_latency_counts_requests_by_command(server):
    with server.connect() as sock:
        store(sock, b"key", b"value")
        assert ask_stats(sock, "latency") == {"latency": "off"}
        assert ask(sock, b"stats latency on\r\n") == b"OK\r\n"
        for _ in range(100):
            assert fetch(sock, b"key") == b"value"
        ask(sock, b"mg key v\r\n" * 50, b"VA 5\r\nvalue\r\n")

        def counted() -> bool:
            shown = ask_stats(sock, "latency")
            return shown.get("get:count") == "100" and shown.get("mg:count") == "50"

        assert eventually(counted)
        shown = ask_stats(sock, "latency")
        times = [float(shown[f"get:{what}_us"]) for what in ("p50", "p90", "p99", "p999", "max")]
        assert times == sorted(times) and times[0] > 0
        assert 0 < float(shown["get:mean_us"]) <= times[-1]
        assert ask(sock, b"stats latency off\r\n") == b"OK\r\n"
        assert fetch(sock, b"key") == b"value"
        assert ask_stats(sock, "latency")["get:count"] == "100"
        assert ask(sock, b"stats reset\r\n") == b"RESET\r\n"
        assert ask_stats(sock, "latency") == {"latency": "off"}


def test_hot_keys_are_found(server):
    with server.connect() as sock:
        store(sock, b"hot", b"value")
        assert ask(sock, b"stats hotkeys on\r\n") == b"OK\r\n"
        for i in range(2000):
            assert fetch(sock, b"hot") == b"value"
            if i % 4 == 0:
                assert fetch(sock, b"cold%d" % i) is None

        shown = ask_stats(sock, "hotkeys")
        first = fields(shown["1"])
        assert first["key"] == "hot"
        # A sixteenth of the requests was looked at; the estimate is within a wide bound of 2000.
        assert 500 < int(first["requests"]) < 8000
        assert first["hits"] == first["requests"]


def test_hot_keys_of_datagrams(server):
    with server.connect() as sock, server.connect_udp() as udp:
        udp.settimeout(PATIENCE_S)
        assert ask(sock, b"stats hotkeys on\r\n") == b"OK\r\n"

        def found() -> bool:
            udp.send(b"\0\1\0\0\0\1\0\0get over-udp\r\n")
            udp.recv(2048)
            return any("key=over-udp" in text for text in ask_stats(sock, "hotkeys").values())

        assert eventually(found)


def test_big_keys_are_the_largest_items(server):
    with server.connect() as sock:
        for i in range(100):
            store(sock, b"key%d" % i, bytes(32 * i))
        store(sock, b"large", bytes(300_000))
        shown = ask_stats(sock, "bigkeys")
        assert len(shown) == 20
        assert fields(shown["1"])["key"] == "large" and int(fields(shown["1"])["size"]) > 300_000
        assert [fields(shown[str(i + 2)])["key"] for i in range(19)] == [f"key{99 - i}" for i in range(19)]


def test_slow_requests_are_kept(server):
    with server.connect() as sock:
        assert ask_stats(sock, "slowlog") == {"slowlog_us": "0"}
        assert ask(sock, b"stats slowlog 1\r\n") == b"OK\r\n"
        for _ in range(10):
            store(sock, b"key", bytes(50_000))
        assert ask(sock, b"stats slowlog 4000000000\r\n") == b"OK\r\n"
        shown = ask_stats(sock, "slowlog")
        assert shown.pop("slowlog_us") == "4000000000"
        commands = [text.split("command=")[1] for text in shown.values()]
        assert commands.count("set key 0 0 50000") >= 1
        assert all(float(text.split("us=")[1].split()[0]) >= 1 for text in shown.values())


def test_from_the_start(start_server):  # noqa: F811
    server = start_server("-o", "track_latency,track_keys,slow_log=1000000")
    with server.connect() as sock:
        assert ask_stats(sock, "latency")["latency"] == "on"
        assert ask_stats(sock, "hotkeys")["hotkeys"] == "on"
        assert ask_stats(sock, "slowlog")["slowlog_us"] == "1000000"


def test_what_is_refused(start_server):  # noqa: F811
    usage = b"CLIENT_ERROR usage: stats latency"
    server = start_server()
    with server.connect() as sock:
        for words in (b"latency maybe", b"hotkeys 5", b"bigkeys all", b"slowlog on", b"slowlog -1"):
            assert ask(sock, b"stats %s\r\n" % words).startswith(usage), words
    server = start_server("-X")
    with server.connect() as sock:
        assert ask_stats(sock, "latency") == {"latency": "off"}
        for words in (b"hotkeys", b"hotkeys on", b"bigkeys", b"slowlog", b"slowlog 5"):
            assert ask(sock, b"stats %s\r\n" % words) == b"CLIENT_ERROR statistics of keys not allowed\r\n"
    server = start_server("-o", "no_admin")
    with server.connect() as sock:
        for words in (b"latency on", b"hotkeys on", b"slowlog 5"):
            assert ask(sock, b"stats %s\r\n" % words) == b"CLIENT_ERROR not allowed here\r\n"
        assert ask_stats(sock, "hotkeys") == {"hotkeys": "off"}
