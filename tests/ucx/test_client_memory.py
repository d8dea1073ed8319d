# SPDX-License-Identifier: Apache-2.0
"""What one endpoint may hold of the store by large values: --ucx-client-memory."""

from __future__ import annotations

import base64
import contextlib
import os

import pytest
from harness.exchange import ask
from harness.ucx import UcxServer

from .test_agreement import memory_kb
from .test_isolation import hostile, others, wait_for

REFUSED = b"SERVER_ERROR value exceeds the memory of one client\r\n"
LONG = "WARPCACHE_LONG_TESTS" in os.environ
MB = 1 << 20
SEGMENT = 64 * 1024  # of a store of 64 MB
LARGE = b"l" * (512 * 1024)

pytestmark = pytest.mark.not_on_gpu(reason="values on their way lie in the host's memory there")


def store(sock, key: bytes, value: bytes) -> bytes:
    return ask(sock, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value), b"\r\n")


def value_of(key: bytes, value: bytes) -> bytes:
    return b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value)


@pytest.fixture(params=("shm", "tcp"))
def transports(request):
    return request.param


def held(server: UcxServer) -> dict[str, int]:
    stats = server.stats()
    return {name: int(stats[name]) for name in ("ucx_endpoints", "ucx_unread_bytes", "segments_pinned", "segments_reserved")}


def test_who_fetches_nothing_holds_its_share_only(transports):
    """500 values are asked for in one go. Others store and read values of a megabyte meanwhile; after kill -9 all is free again."""
    with UcxServer("-m", "64", "-t", "2", "-o", "stall_timeout=0", transports=transports) as own:
        with own.sockets.connect() as sock:
            assert store(sock, b"large", LARGE) == b"STORED\r\n"
        before = held(own)
        share = int(own.stats()["ucx_client_memory"])
        assert share == 4 * MB
        memory = 0
        for turn in range(3 if LONG else 2):
            with hostile(own, "get-many"), hostile(own, "half-set"):
                waited = lambda: int(own.stats()["ucx_values_waited"])  # noqa: E731
                wait_for(lambda: waited() == turn + 1, "it has got its share")
                now = held(own)
                # An eighth does not fit. The end of a value may be short, and then comes eagerly.
                assert 7 * (len(LARGE) - 8000) <= now["ucx_unread_bytes"] <= 7 * len(LARGE)
                assert 0 < now["segments_pinned"] * SEGMENT <= share
                assert 0 < now["segments_reserved"] * SEGMENT <= share
                with others(own), own.server.connect() as by_messages, own.sockets.connect() as by_socket:
                    for number in range(40):  # more than the store has: what is evicted is free for others
                        key, value = b"other-%d" % number, b"%d" % (number % 10) * 1_000_000
                        assert store(by_messages, key, value) == b"STORED\r\n"
                        for sock in (by_messages, by_socket):
                            assert ask(sock, b"get %s\r\n" % key, b"END\r\n") == value_of(key, value) + b"END\r\n"
                assert waited() == turn + 1  # it is not sent more
            wait_for(lambda: held(own) == before, f"all is free, as before: {before}; now {held(own)}")
            with own.sockets.connect() as sock:
                assert store(sock, b"large", LARGE) == b"STORED\r\n"
            memory = memory or memory_kb(own.sockets.pid)
        assert int(own.stats()["ucx_unread_most"]) <= share
        assert memory_kb(own.sockets.pid) < memory + 16 * 1024
        assert own.stats()["large_values_missed"] == "0"


def test_the_limit_is_exact(transports):
    """A value of its size is served, a longer one refused; sockets have no such limit."""
    with UcxServer("-m", "64", "-I", "2m", "--ucx-client-memory=1", transports=transports) as own, contextlib.ExitStack() as stack:
        assert own.stats()["ucx_client_memory"] == str(MB)
        by_socket = stack.enter_context(own.sockets.connect())
        client = stack.enter_context(own.server.connect())
        bystander = stack.enter_context(own.server.connect())
        exact, longer = b"e" * MB, b"m" * (MB + 1)
        assert store(client, b"exact", exact) == b"STORED\r\n"
        assert ask(client, b"get exact\r\n", b"END\r\n") == value_of(b"exact", exact) + b"END\r\n"
        assert own.stats()["ucx_values_refused"] == "0"
        assert store(client, b"longer", longer) == REFUSED
        assert ask(client, b"get longer\r\n", b"END\r\n") == b"END\r\n"
        assert ask(client, b"ms longer %d\r\n%s\r\n" % (len(longer), longer), b"\r\n") == REFUSED
        assert store(by_socket, b"longer", longer) == b"STORED\r\n"
        assert ask(by_socket, b"get longer\r\n", b"END\r\n") == value_of(b"longer", longer) + b"END\r\n"
        assert ask(client, b"get longer\r\n", b"\r\n") == REFUSED
        assert ask(client, b"mg longer v\r\n", b"\r\n") == REFUSED
        assert ask(client, b"mg longer s\r\n", b"\r\n") == b"HD s%d\r\n" % len(longer)
        assert ask(client, b"get longer exact\r\n", b"END\r\n") == value_of(b"exact", exact) + b"END\r\n"
        assert own.stats()["ucx_values_refused"] == "5"
        assert store(bystander, b"exact", exact) == b"STORED\r\n"
        assert ask(bystander, b"get exact\r\n", b"END\r\n") == value_of(b"exact", exact) + b"END\r\n"


@pytest.mark.parametrize("form", ("text", "meta", "base64"))
def test_who_fetches_gets_all_of_many(transports, form):
    """Values come as those before them are taken: none is refused or missed."""
    with UcxServer("-m", "64", "--ucx-client-memory=1", transports=transports) as own, own.server.connect() as sock:
        keys = [b"many%02d" % number for number in range(20)]
        values = {key: key * 50_000 for key in keys}  # 300 KB
        for key in keys:
            assert store(sock, key, values[key]) == b"STORED\r\n"
        if form == "text":
            reply = ask(sock, b"get " + b" ".join(keys) + b"\r\n", b"END\r\n")
            assert reply == b"".join(value_of(key, values[key]) for key in keys) + b"END\r\n"
        else:
            line = b"mg %s v\r\n" if form == "meta" else b"mg %s b v\r\n"
            names = keys if form == "meta" else [base64.b64encode(key) for key in keys]
            reply = ask(sock, b"".join(line % name for name in names) + b"mn\r\n", b"MN\r\n")
            assert reply == b"".join(b"VA %d\r\n%s\r\n" % (len(values[key]), values[key]) for key in keys) + b"MN\r\n"
        # The client has the reply before UCX says that it is sent.
        wait_for(lambda: own.stats()["ucx_unread_bytes"] == "0", "replies are still unread")
        stats = own.stats()
        assert stats["ucx_values_refused"] == stats["large_values_missed"] == "0"
        assert 0 < int(stats["ucx_unread_most"]) <= MB
        assert form == "base64" or int(stats["ucx_values_waited"]) > 0
