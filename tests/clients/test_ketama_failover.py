# SPDX-License-Identifier: Apache-2.0
"""Clients that spread keys over three servers, one of which is killed.

What must hold whatever the client does with the dead server: a value that is read is the right
one, the survivors keep all their keys, and in the end every key can be stored and read again.
"""

import time

import bmemcached
import memcache
import pylibmc
import pytest
from harness.patience import PATIENCE_S
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheError

from clients.support import dialogue, spec, tcp

KEYS = [f"key-{number}" for number in range(300)]
SETTLE_TIMEOUT_S = PATIENCE_S


def value_of(key):
    return f"value of {key}"


def owners(servers):
    """Which server holds each key, by asking every server."""
    held = {}
    for server in servers:
        reply = dialogue(server, b"get " + " ".join(KEYS).encode() + b"\r\n", b"END\r\n")
        for line in reply.split(b"\r\n"):
            if line.startswith(b"VALUE "):
                key = line.split()[1].decode()
                assert key not in held, f"{key} is on two servers"
                held[key] = server
    return held


class PylibmcKetama:
    errors = (pylibmc.Error,)
    binary = False

    def __init__(self, servers):
        self.client = pylibmc.Client(
            [spec(one) for one in servers],
            binary=self.binary,
            behaviors={
                "ketama": True,
                "remove_failed": 1,
                "retry_timeout": 1,
                "dead_timeout": 60,
                "connect_timeout": 500,
                "tcp_nodelay": True,
            },
        )

    def get(self, key):
        return self.client.get(key)

    def get_many(self, keys):
        return self.client.get_multi(keys)

    def set(self, key, value):
        return self.client.set(key, value)


class PylibmcKetamaBinary(PylibmcKetama):
    binary = True


class PymemcacheHash:
    errors = (MemcacheError, OSError)

    def __init__(self, servers):
        self.client = HashClient(
            [tcp(one) for one in servers],
            timeout=1,
            connect_timeout=1,
            ignore_exc=True,
            retry_attempts=1,
            retry_timeout=0.1,
            dead_timeout=60,
            default_noreply=False,
        )

    def get(self, key):
        value = self.client.get(key)
        return None if value is None else value.decode()

    def get_many(self, keys):
        # A key of a failed server comes back as False or None with ignore_exc.
        return {k: v.decode() for k, v in self.client.get_many(keys).items() if v}

    def set(self, key, value):
        return self.client.set(key, value)


class PythonMemcached:
    errors = (OSError,)

    def __init__(self, servers):
        self.client = memcache.Client(
            [spec(one) for one in servers], socket_timeout=1, dead_retry=60
        )

    def get(self, key):
        return self.client.get(key)

    def get_many(self, keys):
        return self.client.get_multi(keys)

    def set(self, key, value):
        return bool(self.client.set(key, value))


CLIENTS = [PylibmcKetama, PylibmcKetamaBinary, PymemcacheHash, PythonMemcached]


def read_checked(client, key):
    """The key's value, None for a miss or an error; anything but the right value fails."""
    try:
        value = client.get(key)
    except client.errors:
        return None
    assert value in (None, value_of(key)), f"{key}: wrong value {value!r}"
    return value


def read_many_checked(client, keys):
    try:
        values = client.get_many(keys)
    except client.errors:
        return {}
    for key, value in values.items():
        assert value == value_of(key), f"{key}: wrong value {value!r}"
    return values


@pytest.mark.parametrize("make", CLIENTS, ids=lambda make: make.__name__)
def test_one_of_three_servers_is_killed(start_server, make):
    servers = [start_server() for _ in range(3)]
    client = make(servers)
    for key in KEYS:
        assert client.set(key, value_of(key))
    assert read_many_checked(client, KEYS).keys() == set(KEYS)
    held = owners(servers)
    assert held.keys() == set(KEYS)
    victim = servers[1]
    survivors_keys = [key for key in KEYS if held[key] is not victim]
    assert len({id(held[key]) for key in survivors_keys}) == 2
    assert 0 < len(survivors_keys) < len(KEYS)

    victim.process.kill()
    victim.process.wait()

    # Reads go on at once: a survivor's key is never lost, and no read gives a wrong value.
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    settled = False
    while not settled and time.monotonic() < deadline:
        for key in KEYS[::10]:
            read_checked(client, key)
        settled = all(read_checked(client, key) is not None for key in survivors_keys)
        settled = settled and set(survivors_keys) <= read_many_checked(client, KEYS).keys()
    assert settled, "a survivor's key is missing"
    assert owners([one for one in servers if one is not victim]).keys() == set(survivors_keys)

    # The dead server's keys find a new home among the survivors.
    missing = set(KEYS)
    while missing and time.monotonic() < deadline:
        for key in sorted(missing):
            try:
                if client.set(key, value_of(key)) and client.get(key) == value_of(key):
                    missing.discard(key)
            except client.errors:
                time.sleep(0.05)
    assert not missing
    assert read_many_checked(client, KEYS).keys() == set(KEYS)
    assert owners([one for one in servers if one is not victim]).keys() == set(KEYS)


def test_binary_ring_without_ejection(start_server):
    """python-binary-memcached keeps a dead server in its ring: misses, never wrong values."""
    servers = [start_server() for _ in range(3)]
    client = bmemcached.DistributedClient(tuple(spec(one) for one in servers), socket_timeout=1)
    assert client.set_multi({key: value_of(key) for key in KEYS}) == []
    held = owners(servers)
    servers[0].process.kill()
    servers[0].process.wait()
    for _ in range(3):
        for key in KEYS:
            expected = None if held[key] is servers[0] else value_of(key)
            assert client.get(key) == expected
    assert client.get_multi(KEYS) == {
        key: value_of(key) for key in KEYS if held[key] is not servers[0]
    }
    client.disconnect_all()


def test_clients_agree_on_the_ketama_ring(start_server):
    """Two ketama clients, text and binary, find each other's keys on the same servers."""
    servers = [start_server() for _ in range(3)]
    text, binary = PylibmcKetama(servers), PylibmcKetamaBinary(servers)
    for key in KEYS:
        assert text.set(key, value_of(key))
    assert binary.get_many(KEYS) == {key: value_of(key) for key in KEYS}
