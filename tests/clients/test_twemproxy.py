# SPDX-License-Identifier: Apache-2.0
"""nutcracker (twemproxy) in front of three servers: ketama, pipelined multi-gets, ejection."""

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, closing

import pymemcache
import pytest
from harness.patience import PATIENCE_S
from harness.servers import free_port
from pymemcache.exceptions import MemcacheError

from clients.support import dialogue, tcp

POOL = """\
pool:
  listen: 127.0.0.1:{port}
  hash: fnv1a_64
  distribution: ketama
  auto_eject_hosts: true
  server_failure_limit: 1
  server_retry_timeout: 60000
  timeout: 300000
  server_connections: 1
  servers:
{servers}
"""
START_TIMEOUT_S = PATIENCE_S
KEYS = [f"key-{number}" for number in range(300)]


def value_of(key):
    return b"value of " + key.encode()


class Proxy:
    """One running nutcracker. stop() ends it by its pid."""

    def __init__(self, servers, folder):
        self.port, stats_port = free_port(), free_port()
        lines = [f"   - 127.0.0.1:{one.port}:1 server{n}" for n, one in enumerate(servers)]
        config = folder / "nutcracker.yml"
        config.write_text(POOL.format(port=self.port, servers="\n".join(lines)))
        self.stats_port = stats_port
        self.log_path = folder / "nutcracker.log"
        self.process = subprocess.Popen(
            ["nutcracker", "-c", str(config), "-o", str(self.log_path), "-v", "6",
             "-p", str(folder / "pid"), "-a", "127.0.0.1", "-s", str(stats_port), "-i", "100"],
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    pytest.fail(f"nutcracker did not start: {self.log_path.read_text()}")
                time.sleep(0.02)

    def client(self):
        return closing(
            pymemcache.Client(
                ("127.0.0.1", self.port), timeout=PATIENCE_S, connect_timeout=PATIENCE_S, default_noreply=False
            )
        )

    def statistics(self):
        """The proxy's own statistics of the pool, once it has gathered them."""
        with socket.create_connection(("127.0.0.1", self.stats_port), 60) as sock:
            text = b""
            while piece := sock.recv(1 << 16):
                text += piece
        return json.loads(text)["pool"]

    def stop(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        self.process.wait(PATIENCE_S)


@pytest.fixture
def servers(start_server):
    return [start_server() for _ in range(3)]


@pytest.fixture
def proxy(servers, tmp_path):
    running = Proxy(servers, tmp_path)
    yield running
    running.stop()


def held_by(server):
    reply = dialogue(server, b"get " + " ".join(KEYS).encode() + b"\r\n", b"END\r\n")
    return {line.split()[1].decode() for line in reply.split(b"\r\n") if line[:6] == b"VALUE "}


def test_every_command_the_proxy_passes_on(proxy):
    with proxy.client() as client:
        assert client.get("key") is None
        assert client.replace("key", b"absent") is False
        assert client.add("key", b"10") is True
        assert client.add("key", b"11") is False
        assert client.incr("key", 5) == 15
        assert client.decr("key", 6) == 9
        assert client.set("key", b"middle")
        assert client.append("key", b"-tail") and client.prepend("key", b"head-")
        value, token = client.gets("key")
        assert value == b"head-middle-tail"
        assert client.cas("key", b"swapped", token) is True
        assert client.cas("key", b"stale", token) is False
        assert client.touch("key", 100) is True
        assert client.touch("missing", 100) is False
        assert client.get("key") == b"swapped"
        assert client.delete("key") is True
        assert client.delete("key") is False


def test_multi_get_over_all_servers(proxy, servers):
    with proxy.client() as client:
        values = {key: value_of(key) for key in KEYS}
        assert client.set_many(values) == []
        assert client.get_many(KEYS + ["absent"]) == values
        assert {k: v for k, (v, _) in client.gets_many(KEYS).items()} == values
    parts = [held_by(one) for one in servers]
    assert all(parts) and sum(len(part) for part in parts) == len(KEYS)


def test_noreply_through_the_proxy(proxy):
    with proxy.client() as client:
        for key in KEYS:
            client.set(key, value_of(key), noreply=True)
        for key in KEYS[::2]:
            client.delete(key, noreply=True)
        assert client.get_many(KEYS) == {key: value_of(key) for key in KEYS[1::2]}


def test_values_of_many_sizes(proxy):
    """Around the proxy's buffers of 16 KB, and well beyond."""
    sizes = [0, 1, 100, 16_000, 16_384, 16_400, 65_536, 300_000, 900_000]
    with proxy.client() as client:
        values = {f"size-{size}": os.urandom(size) for size in sizes}
        for key, value in values.items():
            assert client.set(key, value)
        for key, value in values.items():
            assert client.get(key) == value
        assert client.get_many(list(values)) == values


def test_pipelined_multi_gets(proxy):
    """Many multi-gets on the wire before the first reply is read; each reply must be whole."""
    with proxy.client() as client:
        client.set_many({key: value_of(key) for key in KEYS})
    groups = [KEYS[start : start + 20] + ["absent"] for start in range(0, len(KEYS), 20)] * 20
    with socket.create_connection(("127.0.0.1", proxy.port), 60) as sock:
        sock.sendall(b"".join(b"get " + " ".join(group).encode() + b"\r\n" for group in groups))
        lines = sock.makefile("rb")
        for group in groups:
            received = {}
            while (line := lines.readline()) != b"END\r\n":
                word, key, flags, size = line.split()
                assert (word, flags) == (b"VALUE", b"0")
                received[key.decode()] = lines.read(int(size))
                assert lines.read(2) == b"\r\n"
            assert received == {key: value_of(key) for key in group if key != "absent"}


def test_one_server_is_killed(proxy, servers):
    with proxy.client() as client:
        assert client.set_many({key: value_of(key) for key in KEYS}) == []
        parts = [held_by(one) for one in servers]
        kept = parts[0] | parts[2]
        victim = servers[1]
        assert parts[1]
        victim.process.kill()
        victim.process.wait()

        # Until the proxy has ejected the server its keys give errors; then they are misses.
        deadline = time.monotonic() + PATIENCE_S
        left = set(KEYS)
        while left and time.monotonic() < deadline:
            for key in sorted(left):
                try:
                    value = client.get(key)
                except (MemcacheError, OSError):
                    continue
                assert value == (value_of(key) if key in kept else None), key
                left.discard(key)
        assert not left
        assert client.get_many(KEYS) == {key: value_of(key) for key in kept}

        # The ring of two takes every key.
        assert client.set_many({key: value_of(key) for key in KEYS}) == []
        assert client.get_many(KEYS) == {key: value_of(key) for key in KEYS}
    assert held_by(servers[0]) | held_by(servers[2]) == set(KEYS)


def test_the_proxy_sees_no_protocol_error(proxy, servers):
    with proxy.client() as client:
        for round_number in range(5):
            client.set_many({key: value_of(key) * round_number for key in KEYS})
            client.get_many(KEYS)
            client.delete_many(KEYS[::3])
    deadline = time.monotonic() + PATIENCE_S
    while (pool := proxy.statistics())["client_connections"] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert pool["client_err"] == 0 and pool["server_ejects"] == 0
    for number in range(len(servers)):
        server = pool[f"server{number}"]
        assert server["server_err"] == 0 and server["server_timedout"] == 0
        assert server["requests"] == server["responses"] > 0


def test_clients_of_the_proxy_share_one_connection_per_server(proxy, servers):
    with ExitStack() as stack:
        direct = [stack.enter_context(closing(pymemcache.Client(tcp(one)))) for one in servers]
        before = [one.stats()[b"curr_connections"] for one in direct]
        clients = [stack.enter_context(proxy.client()) for _ in range(20)]
        for client in clients:
            assert client.set_many({key: value_of(key) for key in KEYS}) == []
        after = [one.stats()[b"curr_connections"] for one in direct]
        assert all(0 <= now - then <= 1 for now, then in zip(after, before, strict=True))
