# SPDX-License-Identifier: Apache-2.0
"""examples/many_servers: several servers on one host, with twemproxy, memcached's own proxy or nothing in front. The scripts
themselves are started; one server goes away and comes back.

MEMCACHED_PROXY names a memcached that is built with its proxy; else that of the PATH is asked.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pylibmc
import pymemcache
import pytest
from harness.exchange import ask
from harness.patience import PATIENCE_S
from harness.servers import REPO_ROOT
from pymemcache.exceptions import MemcacheError

FOLDER = REPO_ROOT / "examples" / "many_servers"
CLUSTER = FOLDER / "cluster"
PROXY = os.environ.get("MEMCACHED_PROXY", "memcached")
KEYS = [f"key-{number}" for number in range(300)]


def eventually(condition, what: str):
    deadline = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return result


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that are free now."""
    for _ in range(1000):
        first = random.randrange(20_000, 32_000)  # below those that the kernel gives to clients
        try:
            for port in range(first, first + count):
                with socket.socket() as sock:
                    sock.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError("no free ports")


def value_of(key: str) -> bytes:
    return b"value of " + key.encode()


def runs(pid: int) -> bool:
    """A process that has ended may still be there for whoever inherited it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Cluster:
    """The script, until its servers serve. stop() ends it by its pid."""

    def __init__(self, target, folder: Path, servers: int, *words: str, options=("-m", "64", "-t", "1"), env=None):
        self.folder, self.log = folder / "cluster", folder / "log"
        for _ in range(5):  # another process may take a port meanwhile
            self.first = free_ports(servers + 2)
            self.port = self.first + servers
            command = [
                CLUSTER, "up", f"--folder={self.folder}", f"--program={target.path}", f"--servers={servers}",
                f"--first-port={self.first}", f"--port={self.port}", *words, "--", *options,
            ]  # fmt: skip
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, *map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(env or {})}
                )
            eventually(lambda: "ready" in self.said() or self.process.poll() is not None, "the script does not start")
            if self.process.poll() is None:
                break
        assert self.process.poll() is None, self.said()
        self.ports = range(self.first, self.first + servers)

    def said(self) -> str:
        return self.log.read_text()

    def call(self, *words: str):
        command = [sys.executable, CLUSTER, words[0], f"--folder={self.folder}", *words[1:]]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE_S)

    def change(self, *words: str) -> None:
        done = self.call(*words)
        assert done.returncode == 0, done.stderr

    def pids(self) -> dict[str, int]:
        found = {}
        for path in self.folder.glob("*.pid"):
            with contextlib.suppress(FileNotFoundError):  # a server that is started again replaces its file
                if path.stem != "nutcracker":
                    found[path.stem] = int(path.read_text())
        return found

    def client(self, port: int | None = None):
        address = ("127.0.0.1", port or self.port)
        return closing(pymemcache.Client(address, timeout=PATIENCE_S, connect_timeout=PATIENCE_S, default_noreply=False))

    def held(self, number: int, keys=None) -> set[str]:
        """The keys that a server has, asked directly."""
        with self.client(self.ports[number - 1]) as client:
            return set(client.get_many(keys or KEYS))

    def stop(self, number=signal.SIGINT) -> None:
        """Ctrl-C: nothing is left."""
        pids = self.pids()
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.wait(PATIENCE_S) == 0, self.said()
        assert not [name for name, pid in pids.items() if runs(pid)], self.said()
        assert not self.folder.exists()


@pytest.fixture
def cluster(target, tmp_path):
    if target.name != "warpcached":
        pytest.skip("the scripts start warpcached")
    running = []

    def start(servers: int, *words: str, **how):
        running.append(Cluster(target, tmp_path, servers, *words, **how))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@functools.cache
def has_proxy() -> bool:
    try:
        return "routelib" in subprocess.run([PROXY, "-h"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
    except OSError:
        return False


@pytest.fixture
def proxied(cluster):
    if not has_proxy():
        pytest.skip(f"{PROXY} has no proxy with routelib: MEMCACHED_PROXY may name one")
    return lambda servers: cluster(servers, "--front=proxy", f"--front-program={PROXY}")


# --- The script


def test_eight_servers_and_their_end(cluster):
    running = cluster(8)
    pids = running.pids()
    assert len(pids) == 8
    for number, port in enumerate(running.ports):
        with running.client(port) as client:
            assert client.set("key", str(number)) and client.get("key") == str(number).encode()
            assert client.stats()[b"pid"] == pids[f"server{number + 1}"]
    done = running.call("status")
    assert done.returncode == 0 and len(re.findall(r"server\d +process \d+\n", done.stdout)) == 8


def test_a_server_that_dies_is_started_again(cluster):
    running = cluster(2)
    before = running.pids()
    os.kill(before["server2"], signal.SIGKILL)
    eventually(lambda: running.pids().get("server2", before["server2"]) != before["server2"], "server2 did not come back")
    assert running.pids()["server1"] == before["server1"]
    with running.client(running.ports[1]) as client:
        assert client.set("key", "x")
    assert "server2 ended with status -9" in running.said()


def test_a_server_that_is_stopped_stays_away(cluster):
    running = cluster(2)
    running.change("stop", "2")
    assert "server2    stopped" in running.call("status").stdout
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", running.ports[1]), PATIENCE_S).close()
    running.change("stop", "2")  # again
    running.change("start", "2")
    running.change("start", "2")
    with running.client(running.ports[1]) as client:
        assert client.set("key", "x")
    done = running.call("stop", "3")
    assert done.returncode == 1 and "there is no server3" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_all_too(cluster, number):
    cluster(2).stop(number)


def test_nothing_is_left_when_the_script_is_killed(target, tmp_path):
    if target.name != "warpcached":
        pytest.skip("the scripts start warpcached")
    running = Cluster(target, tmp_path, 2)
    pids = running.pids()
    running.process.kill()
    running.process.wait()
    eventually(lambda: not any(runs(pid) for pid in pids.values()), "servers are left")
    done = running.call("status")
    assert done.returncode == 1 and "no cluster runs" in done.stderr
    again = Cluster(target, tmp_path, 2)  # its files are in nobody's way
    again.stop()


def test_one_cluster_a_folder(cluster, target):
    running = cluster(1)
    done = subprocess.run(
        [CLUSTER, "up", f"--folder={running.folder}", f"--program={target.path}"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 1 and "runs" in done.stderr
    assert running.process.poll() is None and len(running.pids()) == 1


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (["--servers=0"], 2, "no number from 1 to 64"),
        (["--servers=x"], 2, "no number from 1 to 64"),
        (["--first-port=65530"], 2, "leaves no ports for 8 servers"),
        (["--port=11315", "--front=twemproxy"], 2, "is a port of the servers"),
        (["--front=nginx"], 2, "invalid choice"),
        (["--gpus=2"], 2, "--gpus needs --engine=cuda"),
        (["--front=proxy", "--servers=1"], 2, "needs two servers"),
        (["--front=proxy", "--routes=/nowhere.lua"], 2, "there is no file /nowhere.lua"),
        (["--front=proxy", "--front-program=/bin/true"], 1, "has no proxy with routelib"),
        (["--front=twemproxy", "--front-program=/nowhere"], 1, "no twemproxy (nutcracker) at /nowhere"),
        (["--program=/nowhere"], 1, "no warpcached at /nowhere"),
        (["--host=192.0.2.1"], 1, "server1 ended with status 71"),
        (["--", "--no-such-option"], 1, "server1 ended with status 64"),
        (["stop", "1"], 2, "unrecognized arguments"),
    ],
)  # fmt: skip
def test_what_is_refused(target, tmp_path, words, status, why):
    if target.name != "warpcached":
        pytest.skip("the scripts start warpcached")
    own = [] if any(word.startswith("--program") for word in words) else [f"--program={target.path}"]
    first = [] if any(word.startswith(("--first-port", "--port", "--front=proxy")) for word in words) else [f"--first-port={free_ports(8)}"]
    done = subprocess.run(
        [CLUSTER, "up", f"--folder={tmp_path}/cluster", *own, *first, *words], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == status and why in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "cluster").exists()


def test_a_folder_with_other_files(target, tmp_path):
    if target.name != "warpcached":
        pytest.skip("the scripts start warpcached")
    (tmp_path / "server1.log").write_text("mine")
    command = [CLUSTER, "up", f"--folder={tmp_path}", f"--program={target.path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and "has other files" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["server1.log"]


def test_a_port_that_is_taken(target, tmp_path):
    if target.name != "warpcached":
        pytest.skip("the scripts start warpcached")
    first = free_ports(2)
    with socket.create_server(("127.0.0.1", first + 1)):
        done = subprocess.run(
            [CLUSTER, "up", f"--folder={tmp_path}/cluster", f"--program={target.path}", "--servers=2", f"--first-port={first}"],
            capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
    assert done.returncode == 1 and f"server2 cannot have 127.0.0.1:{first + 1}" in done.stderr


def test_each_server_has_its_gpu(cluster):
    if "SIMT_WARPCACHED" not in os.environ:
        pytest.skip("needs the CUDA engine on simulated GPUs")
    running = cluster(3, "--engine=cuda", "--gpus=2", f"--program={os.environ['SIMT_WARPCACHED']}", env={"SIMT_GPU": "2"})
    for port in running.ports:
        with running.client(port) as client:
            assert client.set("key", "x") and client.get("key") == b"x"
    for number in range(3):
        log = (running.folder / f"server{number + 1}.log").read_text()
        assert "engine    cuda" in log
        command = Path(f"/proc/{running.pids()[f'server{number + 1}']}/cmdline").read_bytes().split(b"\0")
        assert b"--gpu=%d" % (number % 2) in command


def test_without_a_gpu(target, tmp_path):
    if target.name != "warpcached":
        pytest.skip("the scripts start warpcached")
    command = [sys.executable, CLUSTER, "up", f"--folder={tmp_path}/cluster", f"--program={target.path}", "--engine=cuda"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, "PATH": "/nowhere"})
    assert done.returncode == 1 and "nvidia-smi finds no GPU" in done.stderr


# --- Rings


def test_twemproxy_and_a_server_that_leaves_and_comes_back(cluster):
    running = cluster(3, "--front=twemproxy", f"--timeout-ms={PATIENCE_S * 1000:.0f}")
    with running.client() as client:
        assert client.set_many({key: value_of(key) for key in KEYS}) == []
        assert client.get_many(KEYS) == {key: value_of(key) for key in KEYS}
        owned = [running.held(number) for number in (1, 2, 3)]
        assert all(owned) and sum(map(len, owned)) == len(KEYS)

        running.change("stop", "2")

        def values(keys):
            """None while the proxy has not taken the server out of its ring."""
            try:
                return {key: client.get(key) for key in keys}
            except (MemcacheError, OSError):
                return None

        found = eventually(lambda: values(KEYS), "the server is not ejected")
        # The keys of the others stay where they are; those of the one that left are misses, and have a new home.
        assert found == {key: None if key in owned[1] else value_of(key) for key in KEYS}
        assert client.set_many({key: value_of(key) for key in owned[1]}) == []
        assert owned[0] <= running.held(1) and owned[2] <= running.held(3)

        running.change("start", "2")

        def is_back():
            values(sorted(owned[1]))
            with running.client(running.ports[1]) as direct:
                return direct.stats()[b"cmd_get"] > 0

        eventually(is_back, "the server does not come back")
        # It has exactly its own keys again.
        assert eventually(lambda: values(KEYS), "the proxy does not answer") == {
            key: None if key in owned[1] else value_of(key) for key in KEYS
        }
        assert client.set_many({key: value_of(key) for key in KEYS}) == []
        assert running.held(2) == owned[1]


def test_clients_ketama(cluster):
    """The example program, which checks that only the keys of the server that leaves move, and that they come back."""
    running = cluster(8)
    servers = [f"127.0.0.1:{port}" for port in running.ports]
    done = subprocess.run(
        [sys.executable, FOLDER / "ketama", *servers, "--without", servers[2], "--timeout-ms", str(round(PATIENCE_S * 1000))],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    moved = int(re.search(r"(\d+) keys have moved", done.stdout)[1])
    assert 0 < moved < 1000 and f"{1000 - moved} have stayed" in done.stdout
    for words, why in (
        (["127.0.0.1:1"], "at least two servers"),
        ([*servers, "--without", "127.0.0.1:1"], "is none of the servers"),
        (["127.0.0.1:1", "127.0.0.1:2", "--without", "127.0.0.1:2"], "does not answer"),
    ):
        done = subprocess.run([sys.executable, FOLDER / "ketama", *words], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode != 0 and why in done.stderr and "Traceback" not in done.stderr


def test_clients_that_eject_a_server_by_themselves(cluster):
    """libmemcached's ketama while a server is away: nothing wrong is read, and with its return all is as before."""
    running = cluster(3)

    def ring():
        behaviors = {"ketama": True, "remove_failed": 1, "retry_timeout": 1, "dead_timeout": 1, "tcp_nodelay": True}
        return pylibmc.Client([f"127.0.0.1:{port}" for port in running.ports], behaviors=behaviors)

    client = ring()
    assert client.set_multi({key: value_of(key) for key in KEYS}) == []
    owned = [running.held(number) for number in (1, 2, 3)]
    running.change("stop", "3")

    def stored():
        try:
            return client.set_multi({key: value_of(key) for key in KEYS}) == []
        except pylibmc.Error:
            return False

    eventually(stored, "the server is not ejected")
    assert client.get_multi(KEYS) == {key: value_of(key) for key in KEYS}
    assert owned[0] <= running.held(1) and owned[1] <= running.held(2)
    running.change("start", "3")
    # Another client finds the keys of the first two where they were, and those of the third missing.
    assert ring().get_multi(KEYS) == {key: value_of(key) for key in owned[0] | owned[1]}
    assert ring().set_multi({key: value_of(key) for key in KEYS}) == []
    assert running.held(3) == owned[2]


# --- memcached's own proxy


def test_the_proxy_spreads_keys_over_a_ring(proxied):
    running = proxied(3)
    with running.client() as client:
        assert client.set_many({key: value_of(key) for key in KEYS}) == []
        assert client.get_many(KEYS) == {key: value_of(key) for key in KEYS}
        owned = [running.held(number) for number in (1, 2, 3)]
        assert all(owned) and sum(map(len, owned)) == len(KEYS)
        assert client.add("key-0", b"x") is False and client.delete("key-0") is True and client.get("key-0") is None
        assert client.set("n", b"10") and client.incr("n", 5) == 15
        running.change("stop", "1")
        for key in KEYS[1:]:
            if key in owned[0]:
                with pytest.raises(MemcacheError):
                    client.get(key)
            else:
                assert client.get(key) == value_of(key)
        running.change("start", "1")

        def reads(key):
            try:
                return client.get(key) is None
            except MemcacheError:
                return False

        key = sorted(owned[0] - {"key-0"})[0]
        eventually(lambda: reads(key), "the server does not come back")
        assert client.set(key, b"x") and key in running.held(1)


def test_replicated_keys_survive_a_server(proxied):
    running = proxied(2)
    keys = [f"replicated:{number}" for number in range(50)]
    with running.client() as client:
        assert client.set_many({key: value_of(key) for key in keys}) == []
        assert running.held(1, keys) == running.held(2, keys) == set(keys)
        running.change("stop", "1")
        for key in keys:
            assert client.get(key) == value_of(key)
        with suppress(MemcacheError):  # one of the two answers
            client.set(keys[2], value_of(keys[3]))
        assert client.get(keys[2]) == value_of(keys[3])
        with suppress(MemcacheError):
            client.set(keys[2], value_of(keys[2]))
        running.change("start", "1")
        eventually(lambda: client.stats() is not None, "the proxy does not answer")
        for key in keys:  # a miss of the first is read from the second
            assert client.get(key) == value_of(key)
        assert client.set(keys[0], b"x") in (True, None)
    eventually(lambda: stores(running, keys[1]), "no copy is stored in the server that is back")


def stores(running, key: str) -> bool:
    """Whether a store through the proxy reaches both servers."""
    with running.client() as client:
        try:
            client.set(key, b"new")
        except MemcacheError:
            return False
    return running.held(1, [key]) == running.held(2, [key]) == {key}


def test_failover_to_the_other_pool(proxied):
    running = proxied(2)
    keys = [f"failover:{number}" for number in range(50)]
    with running.client() as client:
        assert client.set_many({key: value_of(key) for key in keys}) == []
        assert running.held(1, keys) == set(keys) and running.held(2, keys) == set()
        running.change("stop", "1")
        for key in keys:
            assert client.get(key) is None  # its cache is gone; what is stored now goes to the other pool
            assert client.set(key, b"again") and client.get(key) == b"again"
        assert running.held(2, keys) == set(keys)
        running.change("start", "1")
        eventually(lambda: client.set(keys[0], b"back") and running.held(1, keys) == {keys[0]}, "pool a does not come back")
        assert client.get(keys[0]) == b"back"


def test_a_cold_pool_is_warmed_up(proxied):
    running = proxied(2)
    keys = [f"warmup:{number}" for number in range(50)]
    with running.client(running.ports[0]) as warm, running.client(running.ports[1]) as cold, running.client() as client:
        for key in keys:
            assert warm.set(key, value_of(key), expire=1000, flags=7)
        assert warm.set("other", b"is not moved")
        # What the cold pool misses comes from the warm one.
        assert client.get_many([*keys, "warmup:none"]) == {key: value_of(key) for key in keys}
        # What is stored goes to the cold pool alone; what is deleted leaves both.
        assert client.set("warmup:0", b"new") and warm.get("warmup:0") == value_of("warmup:0") and cold.get("warmup:0") == b"new"
        assert client.get("warmup:0") == b"new"
        client.delete("warmup:1")  # one of the two answers
        assert warm.get("warmup:1") is None and client.get("warmup:1") is None
        with closing(socket.create_connection(("127.0.0.1", running.port), PATIENCE_S)) as sock:
            assert ask(sock, b"mg warmup:2 v k\r\n", b"value of warmup:2\r\n") == b"VA 17 kwarmup:2\r\nvalue of warmup:2\r\n"
            assert ask(sock, b"mg warmup:1 v\r\n") == b"EN\r\n"
        # The tools copy the rest, and leave what is newer.
        tools = REPO_ROOT / "src" / "tools"
        items = subprocess.run([tools / "warpcache-dump", f"127.0.0.1:{running.ports[0]}"], capture_output=True, timeout=PATIENCE_S, check=True)
        subprocess.run(
            [tools / "warpcache-restore", f"127.0.0.1:{running.port}", "--keep"], input=items.stdout, capture_output=True, timeout=PATIENCE_S, check=True
        )
        assert running.held(2, keys) == set(keys) - {"warmup:1"} and cold.get("warmup:0") == b"new"
        with closing(socket.create_connection(("127.0.0.1", running.ports[1]), PATIENCE_S)) as sock:
            flags, ttl = re.fullmatch(rb"HD f(\d+) t(\d+)\r\n", ask(sock, b"mg warmup:2 f t\r\n")).groups()
        assert flags == b"7" and 0 < int(ttl) <= 1000
    running.change("stop", "1")  # the warm pool is not needed any more
    with running.client() as client:
        assert client.get_many(keys[2:]) == {key: value_of(key) for key in keys[2:]}


# --- Containers


def test_the_compose_file_agrees_with_the_other_files(target, start_server):
    """No containers run here: what the file names is there, and servers take the options that it gives them."""
    reader = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"
    done = subprocess.run(["/usr/bin/python3", "-c", reader], input=(FOLDER / "compose.yaml").read_bytes(), capture_output=True, timeout=PATIENCE_S)
    if b"No module named 'yaml'" in done.stderr:
        pytest.skip("needs Debian's python3-yaml")
    services = json.loads(done.stdout)["services"]
    proxy = services.pop("proxy")
    assert len(services) == 8 and proxy["depends_on"] == list(services)
    assert proxy["environment"]["WARPCACHED_SERVERS"].split() == [f"{name}:11211" for name in services]
    routes, place, mode = proxy["volumes"][0].split(":")
    assert (FOLDER / routes).is_file() and mode == "ro" and f"proxy_arg={place}" in proxy["command"][-1]
    for service in services.values():
        assert service == services["server1"]
    build = services["server1"]["build"]
    container = (FOLDER / build["context"] / build["dockerfile"]).read_text()
    assert "ENTRYPOINT [\"/usr/bin/warpcached\"]" in container and "EXPOSE 11211" in container
    if target.name == "warpcached":
        assert start_server(services["server1"]["command"]).alive()
