# SPDX-License-Identifier: Apache-2.0
"""python-memcached, the oldest of the Python clients (text protocol)."""

import os
import time

import memcache
import pytest
from harness.patience import PATIENCE_S, until_it_holds

from clients.support import VALUES, spec


@pytest.fixture
def client(server):
    made = memcache.Client([spec(server)], cache_cas=True, socket_timeout=PATIENCE_S)
    yield made
    made.disconnect_all()


def test_set_get_delete(client):
    assert client.get("key") is None
    assert client.set("key", "value")
    assert client.get("key") == "value"
    assert client.delete("key")
    assert client.get("key") is None


@pytest.mark.parametrize("value", [*VALUES, None], ids=repr)
def test_types(client, value):
    assert client.set("key", value)
    assert client.get("key", "missing") == value


def test_conditional_stores(client):
    assert not client.replace("key", "absent")
    assert client.add("key", "first")
    assert not client.add("key", "second")
    assert client.replace("key", "third")
    assert client.append("key", "+tail")
    assert client.prepend("key", "head+")
    assert client.get("key") == "head+third+tail"


def test_append_to_a_missing_key(client):
    assert not client.append("key", "tail")
    assert not client.prepend("key", "head")
    assert client.get("key") is None


def test_counters(client):
    assert client.incr("counter") is None
    client.set("counter", 40)
    assert client.incr("counter") == 41
    assert client.incr("counter", 9) == 50
    assert client.decr("counter", 8) == 42
    assert client.decr("counter", 100) == 0
    client.set("big", str(2**64 - 1))
    assert client.incr("big", 1) == 0


def test_cas(client, server):
    other = memcache.Client([spec(server)], cache_cas=True)
    client.set("key", "first")
    assert client.gets("key") == "first"
    assert client.cas("key", "second")
    client.gets("key")
    other.set("key", "meanwhile")
    assert not client.cas("key", "third")
    assert client.get("key") == "meanwhile"
    other.disconnect_all()


def test_touch(client):
    client.set("short", 1, time=1)
    # A second may be over before the next command comes.
    assert until_it_holds(lambda: client.set("kept", 1, time=1) and client.touch("kept", 100))
    time.sleep(2.1)
    assert client.get_multi(["kept", "short"]) == {"kept": 1}


def test_multi(client):
    values = {f"key-{i}": f"value {i}" * (i % 20) for i in range(300)}
    assert client.set_multi(values, key_prefix="p:") == []
    assert client.get_multi(list(values), key_prefix="p:") == values
    assert client.get("p:key-1") == values["key-1"]
    assert client.delete_multi(list(values)[:100], key_prefix="p:")
    assert client.get_multi(list(values), key_prefix="p:") == dict(list(values.items())[100:])


def test_noreply(client):
    client.set("key", "1", noreply=True)
    assert client.get("key") == "1"
    client.incr("key", 9, noreply=True)
    client.decr("key", 1, noreply=True)
    client.append("key", "0", noreply=True)
    assert client.get("key") == "9 0"  # The decrement kept the length of "10".
    client.touch("key", 100, noreply=True)
    client.set_multi({"a": 1, "b": 2}, noreply=True)
    assert client.get_multi(["a", "b"]) == {"a": 1, "b": 2}
    client.delete_multi(["a", "b"], noreply=True)
    client.delete("key", noreply=True)
    assert client.get_multi(["a", "b", "key"]) == {}


def test_large_and_compressed_values(client):
    value = os.urandom(1_000_000)
    assert client.set("large", value) and client.get("large") == value
    text = "compressible " * 200_000
    assert client.set("compressed", text, min_compress_len=1000)
    assert client.get("compressed") == text


def test_item_larger_than_the_server_takes(server):
    client = memcache.Client([spec(server)], server_max_value_length=4 * 1024 * 1024)
    assert not client.set("large", os.urandom(2 * 1024 * 1024))
    assert client.set("key", "value") and client.get("key") == "value"
    assert client.get("large") is None
    client.disconnect_all()


def test_larger_items_with_the_option(start_server):
    server = start_server(["-I", "5m", "-m", "128"])
    client = memcache.Client([spec(server)], server_max_value_length=5 * 1024 * 1024)
    value = os.urandom(4 * 1024 * 1024)
    assert client.set("large", value)
    assert client.get("large") == value
    client.disconnect_all()


def test_statistics(client, server):
    for i in range(100):
        client.set(f"key-{i}", "x" * i * 10)
    ((name, stats),) = client.get_stats()
    assert name == f"{spec(server)} (1)"
    assert int(stats["pid"]) == server.pid and int(stats["cmd_set"]) == 100
    ((_, settings),) = client.get_stats("settings")
    assert int(settings["tcpport"]) == server.port
    ((_, slabs),) = client.get_slab_stats()
    assert int(slabs["active_slabs"]) >= 1 and int(slabs["total_malloced"]) > 0
    classes = {name: values for name, values in slabs.items() if isinstance(values, dict)}
    assert classes and all(int(values["chunk_size"]) > 0 for values in classes.values())
    ((_, items),) = client.get_stats("items")
    numbers = [int(value) for name, value in items.items() if name.endswith(":number")]
    assert sum(numbers) >= 100


def test_flush_all(client):
    client.set_multi({"a": 1, "b": 2})
    client.flush_all()
    assert client.get_multi(["a", "b"]) == {}
    assert client.set("a", 3) and client.get("a") == 3


def test_unix_socket(start_server):
    server = start_server(unix=True)
    client = memcache.Client([f"unix:{server.socket_path}"])
    assert client.set("key", "value") and client.get("key") == "value"
    client.disconnect_all()
