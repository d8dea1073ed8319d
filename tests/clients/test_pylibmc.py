# SPDX-License-Identifier: Apache-2.0
"""pylibmc (libmemcached): text and binary protocol, and the behaviours that change the wire."""

from harness.patience import PATIENCE_S, until_it_holds
import os
import threading
import time

import pylibmc
import pytest

from clients.support import VALUES, dialogue, spec

PROTOCOLS = ["text", "binary"]


def make_client(*servers, protocol="text", **behaviors):
    return pylibmc.Client(list(servers), binary=protocol == "binary", behaviors=behaviors or None)


def stored(store, *arguments):
    """Whether it was stored: a refusal is False in text, an exception of pylibmc in binary."""
    try:
        return store(*arguments)
    except pylibmc.NotFound:
        return False


@pytest.fixture(params=PROTOCOLS)
def protocol(request):
    return request.param


@pytest.fixture
def client(server, protocol):
    made = make_client(spec(server), protocol=protocol, cas=True, tcp_nodelay=True)
    yield made
    made.disconnect_all()


def test_set_get_delete(client):
    assert client.get("key") is None
    assert client.set("key", "value")
    assert client.get("key") == "value"
    assert client.delete("key") is True
    assert client.delete("key") is False
    assert client.get("key") is None


@pytest.mark.parametrize("value", [*VALUES, None], ids=repr)
def test_types(client, value):
    assert client.set("key", value)
    fetched = client.get("key", "missing")
    # pylibmc stores truth values as numbers.
    assert fetched == value and type(fetched) is (int if value is True else type(value))


@pytest.mark.parametrize("length", [1, 16, 100, 249, 250])
def test_key_lengths(client, length):
    assert client.set("k" * length, length)
    assert client.get("k" * length) == length
    assert client.get("j" * length) is None


def test_add_and_replace(client):
    assert not stored(client.replace, "key", "absent")
    assert client.add("key", "first") is True
    assert client.add("key", "second") is False
    assert client.replace("key", "third") is True
    assert client.get("key") == "third"


def test_append_and_prepend(client):
    assert client.append("key", "absent") is False
    assert client.prepend("key", "absent") is False
    assert client.set("key", "middle")
    assert client.append("key", "-tail")
    assert client.prepend("key", "head-")
    assert client.get("key") == "head-middle-tail"


def test_incr_and_decr(client):
    with pytest.raises(pylibmc.NotFound):
        client.incr("counter")
    assert client.set("counter", 40)
    assert client.incr("counter") == 41
    assert client.incr("counter", 9) == 50
    assert client.decr("counter", 8) == 42
    assert client.decr("counter", 100) == 0
    assert client.incr("counter", 7) == 7
    # The value kept its flags, so that it still comes back as a number.
    assert client.get("counter") == 7


def test_incr_of_text(client, server, protocol):
    assert client.set("word", "value")
    with pytest.raises(pylibmc.Error):
        client.incr("word")
    # libmemcached gives the connection up after this error in binary; a new one reads.
    assert make_client(spec(server), protocol=protocol).get("word") == "value"


def test_cas(client):
    assert client.set("key", "first")
    value, token = client.gets("key")
    assert value == "first" and token
    assert client.cas("key", "second", token) is True
    assert client.cas("key", "third", token) is False
    assert client.get("key") == "second"
    _, token = client.gets("key")
    assert client.delete("key")
    assert not stored(client.cas, "key", "fourth", token)
    assert client.get("key") is None


def test_gets_of_a_missing_key(client):
    assert client.gets("missing") == (None, None)


def test_multi(client):
    values = {f"multi-{i}": f"value {i} " * (i % 40) for i in range(400)}
    assert client.set_multi(values) == []
    assert client.get_multi(list(values) + ["absent"]) == values
    assert client.get_multi(["absent"]) == {}
    assert client.delete_multi(list(values)[:200]) is True
    assert client.get_multi(list(values)) == dict(list(values.items())[200:])
    assert client.delete_multi(["absent"]) is False


def test_multi_with_prefix(client):
    assert client.set_multi({"a": 1, "b": 2}, key_prefix="prefix:") == []
    assert client.get_multi(["a", "b", "c"], key_prefix="prefix:") == {"a": 1, "b": 2}
    assert client.get("prefix:a") == 1 and client.get("a") is None
    assert client.add_multi({"a": 9, "c": 3}, key_prefix="prefix:") == ["a"]
    assert client.incr_multi(["a", "c"], key_prefix="prefix:", delta=10) is None
    assert client.get_multi(["a", "c"], key_prefix="prefix:") == {"a": 11, "c": 13}


def test_touch_and_expiry(server):
    """In text only: libmemcached waits in vain for more of a binary touch's reply."""
    client = make_client(spec(server))
    assert client.set("short", 1, time=1)
    # A second may be over before the next command comes.
    assert until_it_holds(lambda: client.set("kept", 1, time=1) and client.touch("kept", 100))
    assert client.set("shortened", 1)
    assert client.touch("shortened", 1)
    assert client.touch("missing", 1) is False
    time.sleep(2.1)
    assert client.get_multi(["short", "kept", "shortened"]) == {"kept": 1}


def test_flush_all(client):
    client.set_multi({f"key{i}": i for i in range(50)})
    assert client.flush_all() is True
    assert client.get_multi([f"key{i}" for i in range(50)]) == {}
    assert client.set("key0", "later") and client.get("key0") == "later"


def test_get_stats(client, server):
    client.set("key", "value")
    ((address, values),) = client.get_stats()
    assert spec(server).encode() in (address if isinstance(address, bytes) else address.encode())
    values = {k if isinstance(k, str) else k.decode(): v for k, v in values.items()}
    assert int(values["pid"]) == server.pid
    assert int(values["cmd_set"]) >= 1


def test_dictionary_interface(client):
    client["key"] = "value"
    assert "key" in client and "none" not in client
    assert client["key"] == "value"
    del client["key"]
    with pytest.raises(KeyError):
        client["key"]


@pytest.mark.parametrize("size", [1000, 8192, 65536, 500_000, 1_000_000])
def test_large_values(client, size):
    value = os.urandom(size)
    assert client.set("large", value)
    assert client.get("large") == value


def test_too_large_a_value(client):
    assert client.set("large", b"old")
    with pytest.raises(pylibmc.Error):
        client.set("large", os.urandom(1024 * 1024 + 1))
    # The connection is in step afterwards.
    assert client.set("key", "value") and client.get("key") == "value"


def test_compression(client):
    value = b"compress me " * 20_000
    assert client.set("key", value, min_compress_len=100, compress_level=9)
    assert client.get("key") == value
    values = {f"compressed-{i}": value + bytes([i]) for i in range(10)}
    assert client.set_multi(values, min_compress_len=100) == []
    assert client.get_multi(list(values)) == values


BEHAVIOURS = {
    "no_block": {"no_block": True, "tcp_nodelay": True},
    "keepalive": {"tcp_keepalive": True, "tcp_nodelay": True},
    "ketama": {"ketama": True},
    "ketama-weighted": {"ketama_weighted": True},
    "prefetch": {"_io_key_prefetch": 10, "_io_bytes_watermark": 4096, "_io_msg_watermark": 8},
    "small-socket-buffers": {"_socket_send_size": 2048, "_socket_recv_size": 2048},
    "hash-md5": {"hash": "md5"},
    "hash-crc": {"hash": "crc"},
    "hash-fnv1a": {"hash": "fnv1a_32"},
    "hash-murmur": {"hash": "murmur"},
}


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_behaviours(start_server, protocol, name):
    """Each behaviour over three servers, since several only choose where a key goes."""
    servers = [spec(start_server()) for _ in range(3)]
    client = make_client(*servers, protocol=protocol, **BEHAVIOURS[name])
    for i in range(100):
        assert client.set(f"single-{i}", i)
    assert [client.get(f"single-{i}") for i in range(100)] == list(range(100))
    values = {f"multi-{i}": os.urandom(i * 20) for i in range(200)}
    assert client.set_multi(values) == []
    assert client.get_multi(list(values)) == values
    assert client.delete_multi(list(values))
    assert client.get_multi(list(values)) == {}


def test_noreply(server):
    client = make_client(spec(server), _noreply=True, tcp_nodelay=True)
    for i in range(300):
        client.set(f"key-{i}", i)
    client.delete("key-0")
    client.incr("key-1", 10)
    expected = {f"key-{i}": i for i in range(2, 300)}
    expected["key-1"] = 11
    # The reads follow the writes on the same connection, hence see them.
    assert client.get_multi([f"key-{i}" for i in range(300)]) == expected


def test_binary_and_text_share_the_data(server):
    text, binary = (make_client(spec(server), protocol=p, cas=True) for p in PROTOCOLS)
    assert text.set("from-text", "value")
    assert binary.get("from-text") == "value"
    value, token = binary.gets("from-text")
    assert text.cas("from-text", "swapped", token) is True
    assert binary.cas("from-text", "stale", token) is False
    assert binary.set("from-binary", 41)
    assert text.incr("from-binary") == 42
    assert binary.get("from-binary") == 42


def test_unix_socket(start_server, protocol):
    server = start_server(unix=True)
    client = make_client(server.socket_path, protocol=protocol)
    values = {f"key-{i}": os.urandom(i * 10) for i in range(200)}
    assert client.set_multi(values) == []
    assert client.get_multi(list(values)) == values


def test_udp(server):
    """libmemcached writes over UDP without waiting for replies; TCP shows what arrived."""
    client = pylibmc.Client([f"udp:{spec(server)}"])
    for i in range(20):
        client.set(f"udp-{i}", f"value-{i}")
    reader = make_client(spec(server))
    keys = {f"udp-{i}": f"value-{i}" for i in range(20)}
    deadline = time.monotonic() + PATIENCE_S
    while (seen := reader.get_multi(list(keys))) != keys and time.monotonic() < deadline:
        time.sleep(0.02)
    assert seen == keys


def test_threads_over_a_pool(server, protocol):
    """Cloned clients, one per thread, as web servers use them."""
    master = make_client(spec(server), protocol=protocol, tcp_nodelay=True)
    pool = pylibmc.ClientPool(master, 4)
    master.set("counter", 0)
    wrong = []

    def work(number):
        for i in range(100):
            with pool.reserve(block=True) as client:
                client.set(f"{number}-{i}", [number, i])
                if client.get(f"{number}-{i}") != [number, i]:
                    wrong.append((number, i))
                client.incr("counter")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert master.get("counter") == 400


def test_libmemcached_leaves_no_stray_reply(server, client):
    """After a long mixture the connection is still in step: what was asked is what comes."""
    for i in range(200):
        key = f"key-{i % 7}"
        client.set(key, i)
        assert client.get(key) == i
        client.delete("missing")
        assert client.get_multi([key, "missing"]) == {key: i}
    assert dialogue(server, b"get key-1\r\n", b"END\r\n").startswith(b"VALUE key-1 ")
