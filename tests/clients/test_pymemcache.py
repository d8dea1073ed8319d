# SPDX-License-Identifier: Apache-2.0
"""pymemcache: Client, PooledClient and HashClient over the text protocol."""

import os
import pickle
import socket
import threading
import time
from contextlib import closing

import pytest
from pymemcache import serde
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import (
    MemcacheClientError,
    MemcacheError,
    MemcacheIllegalInputError,
    MemcacheServerError,
    MemcacheUnknownCommandError,
    MemcacheUnknownError,
)
from harness.patience import PATIENCE_S, until_it_holds

from clients.support import tcp

ALL_BYTES = bytes(range(256))
UINT64_MAX = 2**64 - 1
CLIENT_KINDS = ["plain", "pooled", "hash"]


def make_client(kind, address, **options):
    options.setdefault("connect_timeout", 60)
    options.setdefault("timeout", 60)
    if kind == "plain":
        return Client(address, **options)
    if kind == "pooled":
        return PooledClient(address, max_pool_size=4, **options)
    return HashClient([address], use_pooling=True, max_pool_size=4, **options)


@pytest.fixture(params=CLIENT_KINDS)
def client(request, server):
    # Without noreply by default, so that every command is answered and compared.
    made = make_client(request.param, tcp(server), default_noreply=False)
    yield made
    made.close()


@pytest.fixture
def plain(server):
    made = make_client("plain", tcp(server), default_noreply=False)
    yield made
    made.close()


def test_set_then_get(client):
    assert client.set("key", b"value") is True
    assert client.get("key") == b"value"


def test_get_of_a_missing_key(client):
    assert client.get("missing") is None
    assert client.get("missing", default=b"other") == b"other"


@pytest.mark.parametrize(
    "value",
    [b"", b"\r\n", b"END\r\n", b"VALUE key 0 5\r\nvalue\r\nEND\r\n", ALL_BYTES, b"\0" * 100],
    ids=["empty", "crlf", "end", "looks-like-a-reply", "all-bytes", "zeroes"],
)
def test_values_are_opaque(client, value):
    assert client.set("opaque", value)
    assert client.get("opaque") == value
    assert client.get_many(["opaque", "missing"]) == {"opaque": value}


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 249, 250])
def test_key_lengths(client, length):
    key = "k" * length
    neighbour = "k" * (length - 1) + "K"
    assert client.set(key, b"long key")
    assert client.get(key) == b"long key"
    assert client.get(neighbour) is None
    assert client.delete(key) is True
    assert client.get(key) is None


def test_keys_that_differ_late_are_different(plain):
    keys = ["x" * 249 + chr(ord("a") + i) for i in range(26)]
    for key in keys:
        assert plain.set(key, key[-1].encode() * 40)
    assert plain.get_many(keys) == {key: key[-1].encode() * 40 for key in keys}


def test_key_too_long_is_refused_by_the_client(plain):
    with pytest.raises(MemcacheIllegalInputError):
        plain.set("k" * 251, b"value")
    assert plain.set("k" * 250, b"value")


def test_add_and_replace(client):
    assert client.replace("key", b"absent") is False
    assert client.add("key", b"first") is True
    assert client.add("key", b"second") is False
    assert client.get("key") == b"first"
    assert client.replace("key", b"third") is True
    assert client.get("key") == b"third"


def test_append_and_prepend(client):
    assert client.append("key", b"tail") is False
    assert client.prepend("key", b"head") is False
    assert client.set("key", b"middle")
    assert client.append("key", b"-tail") is True
    assert client.prepend("key", b"head-") is True
    assert client.get("key") == b"head-middle-tail"


def test_append_of_nothing_keeps_the_value(client):
    assert client.set("key", b"value")
    assert client.append("key", b"") is True
    assert client.prepend("key", b"") is True
    assert client.get("key") == b"value"


def test_append_grows_a_value_in_many_steps(plain):
    assert plain.set("log", b"")
    expected = b""
    for step in range(200):
        piece = b"%d," % step
        assert plain.append("log", piece)
        expected += piece
    assert plain.get("log") == expected


def test_cas(client):
    assert client.cas("key", b"value", b"1") is None
    assert client.set("key", b"first")
    value, token = client.gets("key")
    assert value == b"first"
    assert client.cas("key", b"second", token) is True
    assert client.cas("key", b"third", token) is False
    value, next_token = client.gets("key")
    assert (value, next_token != token) == (b"second", True)


@pytest.mark.parametrize("change", ["set", "append", "prepend", "replace", "incr", "delete_set"])
def test_every_change_gives_a_new_cas(plain, change):
    plain.set("key", b"10")
    _, token = plain.gets("key")
    if change == "incr":
        assert plain.incr("key", 1) == 11
    elif change == "delete_set":
        assert plain.delete("key") and plain.set("key", b"10")
    else:
        assert getattr(plain, change)("key", b"1")
    assert plain.cas("key", b"stale", token) is False
    assert plain.get("key") != b"stale"


def test_touch_keeps_the_cas(plain):
    plain.set("key", b"value")
    _, token = plain.gets("key")
    assert plain.touch("key", 100) is True
    assert plain.cas("key", b"next", token) is True


def test_gets_of_a_missing_key(client):
    assert client.gets("missing") == (None, None)


def test_incr_and_decr(client):
    assert client.incr("counter", 1) is None
    assert client.decr("counter", 1) is None
    assert client.set("counter", b"10")
    assert client.incr("counter", 5) == 15
    assert client.decr("counter", 6) == 9
    assert client.decr("counter", 100) == 0
    assert client.incr("counter", UINT64_MAX) == UINT64_MAX
    assert client.incr("counter", 1) == 0


def test_decr_pads_with_spaces(plain):
    """memcached keeps the length of the value when a decrement shortens it."""
    assert plain.set("counter", b"100")
    assert plain.decr("counter", 1) == 99
    assert plain.get("counter") == b"99 "


def test_incr_of_text_is_a_client_error(client):
    client.set("word", b"value")
    with pytest.raises(MemcacheClientError):
        client.incr("word", 1)
    assert client.get("word") == b"value"


def test_incr_keeps_flags_and_expiry(plain):
    assert plain.set("counter", b"7", expire=1000, flags=77)
    assert plain.incr("counter", 1) == 8
    assert plain.raw_command("get counter", b"END\r\n") == b"VALUE counter 77 1\r\n8\r\n"


def test_delete(client):
    assert client.delete("key") is False
    client.set("key", b"value")
    assert client.delete("key") is True
    assert client.delete("key") is False
    assert client.get("key") is None


def test_many(client):
    values = {f"many-{i}": b"v%d" % i * (i % 50) for i in range(500)}
    assert client.set_many(values) == []
    assert client.get_many(list(values) + ["absent"]) == values
    fetched = client.gets_many(list(values))
    assert {key: value for key, (value, _) in fetched.items()} == values
    assert len({token for _, token in fetched.values()}) == len(values)
    assert client.delete_many(list(values)[:250]) is True
    assert client.get_many(list(values)) == dict(list(values.items())[250:])


def test_many_with_noreply(client):
    values = {f"quiet-{i}": b"v%d" % i for i in range(500)}
    assert client.set_many(values, noreply=True) == []
    assert client.get_many(list(values)) == values
    client.delete_many(list(values), noreply=True)
    assert client.get_many(list(values)) == {}


def test_get_many_of_a_repeated_key(plain):
    plain.set("key", b"value")
    reply = plain.raw_command("get key key missing key", b"END\r\n")
    assert reply == b"VALUE key 0 5\r\nvalue\r\n" * 3


def test_noreply_everywhere(client):
    assert client.set("key", b"1", noreply=True) is True
    assert client.get("key") == b"1"
    client.add("key", b"not stored", noreply=True)
    client.replace("key", b"2", noreply=True)
    client.append("key", b"0", noreply=True)
    client.prepend("key", b"1", noreply=True)
    assert client.get("key") == b"120"
    client.incr("key", 5, noreply=True)
    client.decr("key", 1, noreply=True)
    assert client.get("key") == b"124"
    client.touch("key", 100, noreply=True)
    _, token = client.gets("key")
    client.cas("key", b"swapped", token, noreply=True)
    client.cas("key", b"stale", token, noreply=True)
    assert client.get("key") == b"swapped"
    client.delete("key", noreply=True)
    assert client.get("key") is None


def test_flush_all(client):
    client.set_many({f"key{i}": b"v" for i in range(100)})
    client.flush_all()
    assert client.get_many([f"key{i}" for i in range(100)]) == {}
    assert client.set("key0", b"after")
    assert client.get("key0") == b"after"


def test_version(plain):
    version = plain.version()
    assert version and version[:1].isdigit()


def test_stats(plain):
    plain.set("key", b"value")
    plain.get("key")
    plain.get("missing")
    stats = plain.stats()
    assert stats[b"cmd_get"] >= 2 and stats[b"get_hits"] >= 1 and stats[b"get_misses"] >= 1
    assert stats[b"cmd_set"] >= 1 and stats[b"curr_items"] >= 1
    assert stats[b"pid"] > 0 and stats[b"limit_maxbytes"] > 0
    # pymemcache converts these by name; a wrong form would raise or stay bytes.
    assert isinstance(stats[b"rusage_user"], float)
    settings = plain.stats("settings")
    assert isinstance(settings[b"maxbytes"], int) and settings[b"maxbytes"] > 0
    assert isinstance(settings[b"growth_factor"], float)
    assert settings[b"cas_enabled"] == b"yes"
    assert settings[b"inter"] == b"127.0.0.1"


def test_stats_reset(plain):
    plain.set("key", b"value")
    assert plain.stats()[b"cmd_set"] >= 1
    assert plain.raw_command("stats reset") == b"RESET"
    assert plain.stats()[b"cmd_set"] == 0


def test_cache_memlimit(plain):
    assert plain.cache_memlimit(100) is True
    assert plain.stats()[b"limit_maxbytes"] == 100 * 1024 * 1024
    assert plain.cache_memlimit(64) is True


def test_meta_through_raw_command(plain):
    plain.set("key", b"value", flags=5)
    assert plain.raw_command("mn") == b"MN"
    assert plain.raw_command("mg key s f k") == b"HD s5 f5 kkey"
    assert plain.raw_command("mg missing v") == b"EN"
    assert plain.raw_command("mg key s v", b"value\r\n") == b"VA 5 s5\r\n"


def test_unknown_command(plain):
    with pytest.raises(MemcacheUnknownCommandError):
        plain.raw_command("nonsense")
    assert plain.set("key", b"value") and plain.get("key") == b"value"


def test_large_values(client):
    for size in (4095, 4096, 65535, 65536, 500_000, 1_000_000):
        value = os.urandom(size)
        assert client.set("large", value)
        assert client.get("large") == value
    assert client.append("large", b"tail")
    assert client.get("large") == value + b"tail"


def test_too_large_a_value_is_refused_and_drops_the_old_one(plain):
    assert plain.set("large", b"old")
    with pytest.raises(MemcacheServerError, match="too large"):
        plain.set("large", bytes(1024 * 1024 + 1))
    # The stream is still in step, and the old value is not served as if nothing had happened.
    assert plain.get("large") is None
    assert plain.set("large", b"new") and plain.get("large") == b"new"


def test_many_large_values_in_one_reply(plain):
    values = {f"large-{i}": bytes([i]) * 300_000 for i in range(20)}
    assert plain.set_many(values, noreply=False) == []
    assert plain.get_many(list(values)) == values


def test_unicode(server):
    options = {"allow_unicode_keys": True, "encoding": "utf-8", "default_noreply": False}
    with closing(make_client("plain", tcp(server), **options)) as client:
        assert client.set("kľúč-鍵-🔑", "hodnota-値-🎁")
        assert client.get("kľúč-鍵-🔑").decode() == "hodnota-値-🎁"
        assert client.get_many(["kľúč-鍵-🔑", "iný"]) == {"kľúč-鍵-🔑": "hodnota-値-🎁".encode()}
        assert client.delete("kľúč-鍵-🔑") is True


@pytest.mark.parametrize("kind", CLIENT_KINDS)
def test_pickle_serializer(server, kind):
    client = make_client(kind, tcp(server), serde=serde.pickle_serde, default_noreply=False)
    objects = {
        "text": "žluťoučký",
        "bytes": ALL_BYTES,
        "int": -12345678901234567890,
        "nested": {"a": [1, 2, (3, None)], "b": {4.5, "c"}},
    }
    assert client.set_many(objects) == []
    fetched = client.get_many(list(objects))
    assert fetched == objects
    assert {key: type(value) for key, value in fetched.items()} == {
        key: type(value) for key, value in objects.items()
    }
    client.close()


def test_compressing_serializer(server):
    client = make_client(
        "plain",
        tcp(server),
        serde=serde.CompressedSerde(min_compress_len=100),
        default_noreply=False,
    )
    value = b"compressible" * 100_000
    assert client.set("key", value) is True
    assert client.get("key") == value
    assert client.set("short", b"not compressed") and client.get("short") == b"not compressed"
    client.close()


def test_flags_reach_the_deserializer(server):
    seen = []

    class Recorder:
        def serialize(self, key, value):
            return pickle.dumps(value), 0xDEADBEEF

        def deserialize(self, key, value, flags):
            seen.append((key, flags))
            return pickle.loads(value)

    client = make_client("plain", tcp(server), serde=Recorder(), default_noreply=False)
    assert client.set("key", [1, 2])
    assert client.get("key") == [1, 2]
    assert client.get_many(["key"]) == {"key": [1, 2]}
    assert seen == [(b"key", 0xDEADBEEF)] * 2 or seen == [("key", 0xDEADBEEF)] * 2
    client.close()


def test_key_prefix(server, plain):
    client = make_client("plain", tcp(server), key_prefix=b"app:", default_noreply=False)
    assert client.set("key", b"value")
    assert client.get("key") == b"value"
    assert client.get_many(["key", "none"]) == {"key": b"value"}
    assert plain.get("app:key") == b"value" and plain.get("key") is None
    client.close()


def test_dictionary_interface(plain):
    plain["key"] = b"value"
    assert plain["key"] == b"value"
    del plain["key"]
    with pytest.raises(KeyError):
        plain["key"]


def test_expiry(plain):
    """Every way to give an expiry, in one test because each must really be waited for."""
    now = int(time.time())
    plain.set("short", b"v", expire=1)
    plain.set("absolute", b"v", expire=now + 2)
    plain.set("past", b"v", expire=now - 3600)
    plain.set("negative", b"v", expire=-1)
    plain.set("forever", b"v", expire=0)
    plain.set("month", b"v", expire=60 * 60 * 24 * 30)
    # A second may be over before the next command comes.
    assert until_it_holds(lambda: plain.set("touched", b"v", expire=1) and plain.touch("touched", 100))
    plain.set("shortened", b"v", expire=100)
    assert plain.touch("shortened", 1) is True
    plain.set("dropped", b"v")
    assert plain.touch("dropped", -1) is True
    assert until_it_holds(lambda: plain.set("appended", b"v", expire=1) and plain.append("appended", b"+"))

    def swap() -> bool:
        plain.set("swapped", b"v", expire=1)
        token = plain.gets("swapped")[1]
        return token is not None and plain.cas("swapped", b"w", token, expire=100)

    assert until_it_holds(swap)

    # gat and gats are not methods of pymemcache; its raw command carries them.
    def get_and_touch() -> bool:
        plain.set("gat", b"v", expire=1)
        return plain.raw_command("gat 100 gat none", b"END\r\n") == b"VALUE gat 0 1\r\nv\r\n"

    assert until_it_holds(get_and_touch)
    plain.set("gats", b"v", expire=100)
    token = plain.gets("gats")[1]
    assert plain.raw_command("gats 1 gats", b"END\r\n") == b"VALUE gats 0 1 %s\r\nv\r\n" % token
    for key in ("past", "negative", "dropped"):
        assert plain.get(key) is None, key
    assert plain.touch("none", 5) is False
    time.sleep(3.1)
    keys = ["short", "absolute", "forever", "month", "touched", "shortened", "appended"]
    keys += ["swapped", "gat", "gats"]
    left = plain.get_many(keys)
    assert set(left) == {"forever", "month", "touched", "swapped", "gat"}
    assert plain.add("short", b"again") is True
    assert plain.replace("absolute", b"again") is False
    assert plain.incr("shortened", 1) is None
    assert plain.append("appended", b"x") is False


def test_delayed_flush(start_server):
    """On a server of its own: a pending flush would meet the tests that follow."""
    server = start_server()
    with closing(make_client("plain", tcp(server), default_noreply=False)) as client:
        client.set("key", b"value")
        assert client.flush_all(delay=2) is True
        assert client.get("key") == b"value"
        time.sleep(3.1)
        assert client.get("key") is None
        assert client.set("key", b"later") and client.get("key") == b"later"


def test_quit_then_reconnect(plain):
    plain.set("key", b"value")
    plain.quit()
    assert plain.get("key") == b"value"


def test_shutdown(start_server):
    server = start_server(["-A"])
    client = make_client("plain", tcp(server))
    client.set("key", b"value")
    client.shutdown()
    assert server.wait_exit() == 0


def test_shutdown_is_off_by_default(plain):
    with pytest.raises(MemcacheError):
        plain.shutdown()
    assert plain.version()


def test_unix_socket(start_server):
    server = start_server(unix=True)
    client = make_client("plain", server.socket_path, default_noreply=False)
    value = os.urandom(300_000)
    assert client.set("key", value) and client.get("key") == value
    assert client.set_many({f"k{i}": b"v%d" % i for i in range(100)}) == []
    assert len(client.get_many([f"k{i}" for i in range(100)])) == 100
    client.close()


def test_ipv6(start_server):
    server = start_server(ipv6=True)
    client = make_client("plain", tcp(server), default_noreply=False)
    assert client.set("key", b"value") and client.get("key") == b"value"
    client.close()


def test_slow_reader_gets_everything(server, plain):
    """The client sends many requests before it reads one byte of the replies."""
    plain.set("key", b"x" * 10_000)
    count = 400
    with socket.create_connection(tcp(server), timeout=PATIENCE_S) as sock:
        sender = threading.Thread(target=sock.sendall, args=(b"get key\r\n" * count,))
        sender.start()
        time.sleep(0.3)
        one = b"VALUE key 0 10000\r\n" + b"x" * 10_000 + b"\r\nEND\r\n"
        received = bytearray()
        while len(received) < len(one) * count:
            piece = sock.recv(1 << 20)
            assert piece, "the connection was closed"
            received += piece
        sender.join()
        assert received == one * count


def test_errors_leave_the_connection_usable(server):
    """A client that meets an error closes; a raw one shows that the server needs no such help."""
    with socket.create_connection(tcp(server), timeout=PATIENCE_S) as sock:
        lines = sock.makefile("rb")
        sock.sendall(
            b"bogus\r\nset key 0 0 notanumber\r\nget\r\nset key 0 0 2\r\nok\r\nget key\r\n"
        )
        for _ in range(3):  # Which of the two kinds depends on the version of memcached.
            assert lines.readline().startswith((b"ERROR", b"CLIENT_ERROR"))
        assert lines.readline() == b"STORED\r\n"
        assert [lines.readline() for _ in range(3)] == [b"VALUE key 0 2\r\n", b"ok\r\n", b"END\r\n"]


def test_wrong_length_of_data_is_reported(plain):
    with pytest.raises((MemcacheClientError, MemcacheUnknownError)):
        reply = plain.raw_command(b"set key 0 0 3\r\ntoolong", b"\r\n")
        if reply.startswith(b"CLIENT_ERROR"):
            raise MemcacheClientError(reply)
    assert plain.version()
