# SPDX-License-Identifier: Apache-2.0
"""python-binary-memcached: the binary protocol, with its quiet commands in pipelines."""

import os
import time

import bmemcached
import pytest
from bmemcached.exceptions import MemcachedException
from harness.patience import PATIENCE_S

from clients.support import VALUES, spec


@pytest.fixture
def client(server):
    made = bmemcached.Client((spec(server),), socket_timeout=PATIENCE_S)
    yield made
    made.disconnect_all()


def test_set_get_delete(client):
    assert client.get("key") is None
    assert client.get("key", "other") == "other"
    assert client.set("key", "value") is True
    assert client.get("key") == "value"
    assert client.delete("key") is True
    assert client.get("key") is None


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_types(client, value):
    assert client.set("key", value)
    assert client.get("key") == value


@pytest.mark.parametrize("length", [1, 2, 8, 24, 249, 250])
def test_key_lengths(client, length):
    assert client.set("k" * length, "value")
    assert client.get("k" * length) == "value"


def test_keys_with_spaces_and_control_bytes(client):
    """Only the binary protocol can name such keys."""
    keys = ["with space", "with\r\nline", "tab\there", "nul\0byte"]
    assert client.set_multi({key: key for key in keys}) == []
    assert client.get_multi(keys) == {key: key for key in keys}


def test_key_too_long(client):
    with pytest.raises(MemcachedException):
        client.set("k" * 251, "value")


def test_add_and_replace(client):
    assert client.replace("key", "absent") is False
    assert client.add("key", "first") is True
    assert client.add("key", "second") is False
    assert client.replace("key", "third") is True
    assert client.get("key") == "third"


def test_cas(client):
    assert client.set("key", "first")
    value, token = client.gets("key")
    assert value == "first" and token > 0
    assert client.cas("key", "second", token) is True
    assert client.cas("key", "third", token) is False
    assert client.get("key") == "second"
    assert client.gets("missing") == (None, None)


def test_stores_answer_with_the_new_cas(client):
    stored, token = client.set("key", "first", get_cas=True)
    assert stored and client.gets("key") == ("first", token)
    swapped, next_token = client.cas("key", "second", token, get_cas=True)
    assert swapped and next_token != token and client.gets("key") == ("second", next_token)
    replaced, last = client.replace("key", "third", get_cas=True)
    assert replaced and client.gets("key") == ("third", last)
    added, token = client.add("new", "value", get_cas=True)
    assert added and client.gets("new") == ("value", token)


def test_delete_with_cas(client):
    client.set("key", "first")
    _, token = client.gets("key")
    client.set("key", "second")
    assert client.delete("key", cas=token) is False
    assert client.get("key") == "second"
    _, token = client.gets("key")
    assert client.delete("key", cas=token) is True
    assert client.get("key") is None


def test_incr_and_decr(client):
    assert client.incr("counter", 5, default=10) == 10
    assert client.incr("counter", 5, default=99) == 15
    assert client.get("counter") == "15"
    assert client.decr("counter", 6) == 9
    assert client.decr("counter", 100) == 0
    assert client.decr("other", 1, default=7) == 7
    assert client.incr("counter", 2**64 - 1) == 2**64 - 1
    assert client.incr("counter", 1) == 0


def test_incr_that_expires(client):
    assert client.incr("counter", 1, default=3, time=1) == 3
    time.sleep(2.1)
    assert client.incr("counter", 1, default=5) == 5


def test_incr_of_text(client):
    client.set("word", "value")
    with pytest.raises(MemcachedException):
        client.incr("word", 1)
    assert client.get("word") == "value"


def test_set_multi_pipelines_quiet_commands(client):
    values = {f"key-{i}": f"value {i}" * (i % 20) for i in range(1000)}
    assert client.set_multi(values) == []
    assert client.get_multi(list(values) + ["absent"]) == values
    assert client.delete_multi(list(values)[:500]) is True
    assert client.get_multi(list(values)) == dict(list(values.items())[500:])


def test_set_multi_with_cas(client):
    client.set("a", "1")
    client.set("b", "2")
    _, token_a = client.gets("a")
    _, token_b = client.gets("b")
    client.set("b", "meanwhile")
    failed = client.set_multi({("a", token_a): "swapped", ("b", token_b): "stale", ("c", 0): "new"})
    assert [key for key, _ in failed] == ["b"]
    assert client.get_multi(["a", "b", "c"]) == {"a": "swapped", "b": "meanwhile", "c": "new"}


def test_get_multi_with_cas(client):
    client.set_multi({f"key-{i}": str(i) for i in range(50)})
    fetched = client.get_multi([f"key-{i}" for i in range(50)], get_cas=True)
    assert {key: value for key, (value, _) in fetched.items()} == {
        f"key-{i}": str(i) for i in range(50)
    }
    for key, (_, token) in fetched.items():
        assert client.gets(key)[1] == token
    assert len({token for _, token in fetched.values()}) == 50


def test_set_multi_cas(client):
    result = client.set_multi_cas({f"key-{i}": str(i) for i in range(20)})
    for key, token in result.items():
        assert token and client.gets(key)[1] == token


def test_megabyte_values(client):
    for size in (100_000, 1_000_000, 1024 * 1024 - 512):
        value = os.urandom(size)
        assert client.set("large", value, compress_level=0)
        assert client.get("large") == value


def test_too_large_a_value(client):
    with pytest.raises(MemcachedException, match="[Tt]oo large"):
        client.set("large", os.urandom(1024 * 1024 + 1), compress_level=0)
    assert client.set("key", "value") and client.get("key") == "value"


def test_compression(client):
    value = b"compress me " * 100_000
    assert client.set("key", value, compress_level=9)
    assert client.get("key") == value


def test_expiry(client):
    client.set("short", "value", time=1)
    client.set("long", "value", time=100)
    time.sleep(2.1)
    assert client.get_multi(["short", "long"]) == {"long": "value"}


def test_flush_all(client):
    client.set_multi({"a": "1", "b": "2"})
    assert client.flush_all() is True
    assert client.get_multi(["a", "b"]) == {}
    assert client.set("a", "3") and client.get("a") == "3"


def test_stats(client, server):
    client.set("key", "value")
    (values,) = client.stats().values()
    assert int(values["pid"]) == server.pid and int(values["cmd_set"]) >= 1
    (settings,) = client.stats("settings").values()
    assert int(settings["tcpport"]) == server.port
    (items,) = client.stats("items").values()
    assert any(name.endswith(":number") for name in items)
    (slabs,) = client.stats("slabs").values()
    assert int(slabs["active_slabs"]) >= 1
    (reset,) = client.stats("reset").values()
    assert reset == {}
    (values,) = client.stats().values()
    assert int(values["cmd_set"]) == 0


def test_several_servers(start_server):
    servers = tuple(spec(start_server()) for _ in range(3))
    client = bmemcached.DistributedClient(servers, socket_timeout=PATIENCE_S)
    values = {f"key-{i}": f"value {i}" for i in range(300)}
    assert client.set_multi(values) == []
    assert client.get_multi(list(values)) == values
    counts = [int(stats["curr_items"]) for stats in client.stats().values()]
    assert sum(counts) == 300 and all(counts)
    client.disconnect_all()


def test_replicating_client(start_server):
    servers = tuple(spec(start_server()) for _ in range(2))
    client = bmemcached.ReplicatingClient(servers, socket_timeout=PATIENCE_S)
    assert client.set("key", "value")
    for one in servers:
        assert bmemcached.Client((one,)).get("key") == "value"
    client.disconnect_all()


def test_unix_socket(start_server):
    server = start_server(unix=True)
    client = bmemcached.Client((server.socket_path,), socket_timeout=PATIENCE_S)
    values = {f"key-{i}": f"value {i}" for i in range(100)}
    assert client.set_multi(values) == []
    assert client.get_multi(list(values)) == values
    client.disconnect_all()
