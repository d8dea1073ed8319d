# SPDX-License-Identifier: Apache-2.0
"""The NIC cache in simulation between clients and a server, which have a network namespace each."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time

import pylibmc
import pytest
import rtl_tools
from frames.support import ping, say
from harness.fixtures import require_target
from harness.network import enter_new_network, in_own_network
from harness.patience import PATIENCE_S
from harness.servers import start_server
from harness.veth import ip
from pymemcache.client.base import Client
from udp_sockets import UdpSockets

WIRE, LINK = "wire0", "host0"
HOST, CLIENT = "10.8.0.1", "10.8.0.2"
HOST6, CLIENT6 = "fd08::1", "fd08::2"
PORT = 11211
LONG = "WARPCACHE_LONG_TESTS" in os.environ
OPERATIONS = 1_000_000 if LONG else 3000
LOAD_S = 20_000 if LONG else 600  # at most, of many requests
# A server keeps the order of its frames, which is what the cache needs of it, if one thread takes them.
SERVERS = {"memcached": [], "warpcached": ["--udp-allow=10.8.0.0/24", "--udp-allow=fd08::/64"]}


class Bump:
    """nic-cache-rtl between the namespace of the calling thread, where the server runs, and that of the clients."""

    def __init__(self):
        self.executor = concurrent.futures.ThreadPoolExecutor(1)
        self.far(enter_new_network)
        self.program = subprocess.Popen(
            [rtl_tools.program("nic-cache-rtl"), WIRE, LINK, "--port", str(PORT), "--fill-seconds", "0"], stdout=subprocess.PIPE, text=True)
        line = self.program.stdout.readline()
        if line == "" and self.program.wait(PATIENCE_S) == 71:
            pytest.skip("no TAP interface may be made")
        assert line == "ready\n"
        ip("link", "set", WIRE, "netns", str(self.far(threading.get_native_id)))
        self.set_up(LINK, HOST, HOST6)
        self.far(self.set_up, WIRE, CLIENT, CLIENT6)

    @staticmethod
    def set_up(interface: str, address: str, address6: str) -> None:
        ip("address", "add", f"{address}/24", "dev", interface)
        ip("address", "add", f"{address6}/64", "dev", interface, "nodad")
        ip("link", "set", interface, "up")

    def far(self, function, *arguments, **named):
        """Calls it where the clients are."""
        return self.executor.submit(function, *arguments, **named).result(LOAD_S)

    def udp(self, host: str = HOST) -> socket.socket:
        sock = self.far(socket.socket, socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        sock.settimeout(PATIENCE_S)
        sock.connect((host, PORT))
        return sock

    def client(self, **options) -> Client:
        """Of pymemcache, with noreply nowhere, connected."""
        def make() -> Client:
            made = Client((HOST, PORT), default_noreply=False, connect_timeout=PATIENCE_S, timeout=PATIENCE_S, **options)
            made.version()
            return made
        return self.far(make)

    def run(self, *command: object) -> str:
        done = self.far(subprocess.run, list(map(str, command)), capture_output=True, text=True, timeout=LOAD_S, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def stop(self) -> dict[str, int]:
        """The cache's counters."""
        self.program.send_signal(signal.SIGTERM)
        out, _ = self.program.communicate(timeout=PATIENCE_S)
        self.executor.shutdown()
        assert self.program.returncode == 0, out
        return {name: int(number) for number, name in re.findall(r"(\d+) (answered|forwarded|filled|fills dead|flushes|cycles)", out)}


@contextlib.contextmanager
def served(name: str):
    """A server and clients with the cache between them; at the end `counts` has its counters."""
    target = require_target(name)
    bump = Bump()
    bump.counts = {}
    server = None
    try:
        options = ["-u", "root"] if os.geteuid() == 0 else []
        server = subprocess.Popen(
            [target.path, *options, "-l", f"{HOST},[{HOST6}]", "-p", str(PORT), "-U", str(PORT), "-t", "1", *SERVERS[name]],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection((HOST, PORT), PATIENCE_S).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, f"{name} does not serve"
                time.sleep(0.05)
        yield bump
    finally:
        if server is not None:
            server.kill()
            server.wait()
        counts = bump.stop()
    bump.counts.update(counts)
    assert [name for _, name in socket.if_nameindex() if name in (WIRE, LINK)] == []


@pytest.mark.parametrize("name", SERVERS)
@in_own_network
def test_pymemcache_over_udp(name):
    with served(name) as bump, contextlib.closing(bump.client(socket_module=UdpSockets())) as client:
        assert client.set("a", b"1", flags=5) is True
        for _ in range(20):
            assert client.get("a") == b"1"
        value, cas = client.gets("a")
        assert value == b"1" and client.cas("a", b"2", cas) is True
        assert client.get("a") == b"2" and client.cas("a", b"3", cas) is False
        assert client.incr("a", 40) == 42 and client.get("a") == b"42"
        assert client.append("a", b"x") is True and client.get("a") == b"42x"
        large = bytes(range(256)) * 20  # a reply of several datagrams
        assert client.set("b", large[:1300]) is True and client.append("b", large[1300:2500]) is True
        assert client.get_many(["b", "none", "a", "no"]) == {"b": large[:2500], "a": b"42x"}
        assert client.delete("a") is True and client.get("a") is None
        assert client.add("a", b"7") is True and client.get("a") == b"7"
        assert client.flush_all() is True and client.get("a") is None
    assert bump.counts["answered"] >= 10, bump.counts


@in_own_network
def test_what_goes_by_is_unchanged():
    """TCP with values of many frames, a ping, a reply larger than the core's; after them copies are not old."""
    with served("memcached") as bump, contextlib.closing(bump.client()) as tcp, bump.udp() as udp, bump.udp(HOST6) as udp6:
        large = os.urandom(100_000)
        assert tcp.set("large", large) is True and tcp.get("large") == large
        bump.far(ping, HOST, 1000)
        for number in range(20):
            value = b"%d" % number
            assert tcp.set("a", value) is True
            for sock in (udp, udp6):
                for _ in range(3):
                    assert say(sock, b"get a\r\n", number) == b"VALUE a 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
    assert bump.counts["answered"] > 0 and bump.counts["flushes"] >= 20, bump.counts


@in_own_network
def test_libmemcached():
    """pylibmc by TCP in both protocols, and its writes by UDP, which it sends without waiting for replies."""
    def use(udp: socket.socket) -> None:
        for binary in (False, True):
            client = pylibmc.Client([f"{HOST}:{PORT}"], binary=binary)
            assert client.set("p", "text") and client.get("p") == "text"
            assert client.set_multi({f"m{i}": i for i in range(20)}) == []
            assert client.get_multi([f"m{i}" for i in range(20)]) == {f"m{i}": i for i in range(20)}
            client.disconnect_all()
        writer = pylibmc.Client([f"udp:{HOST}:{PORT}"])
        for number in range(20):
            writer.set("u", b"%d" % number)
        deadline = time.monotonic() + PATIENCE_S
        while (reply := say(udp, b"get u\r\n")).split(b"\r\n")[1] != b"19":
            assert time.monotonic() < deadline, reply
        assert say(udp, b"get u\r\n") == reply

    with served("memcached") as bump, bump.udp() as udp:
        bump.far(use, udp)


@pytest.mark.parametrize("name", SERVERS)
@in_own_network
def test_warpcache_load(name):
    """The load generator stores all keys and compares every value that comes back."""
    load = rtl_tools.program("warpcache-load")
    with served(name) as bump:
        bump.run(load, f"{HOST}:{PORT}", "--udp", "-c", 4, "-k", 200, "--warm-up", 0, "--requests", 2000, "--json", "-")
    assert bump.counts["answered"] > 100 and bump.counts["forwarded"] > 200, bump.counts


@pytest.mark.long
@pytest.mark.parametrize("name", SERVERS)
@in_own_network
def test_every_reply_has_its_place_in_one_order(name):
    """Gets and writes of many clients: tests/stress/README.md."""
    stress = rtl_tools.program("stress_run", "stress_run is not built")
    with served(name) as bump:
        out = bump.run(stress, "--udp-server", f"{HOST}:{PORT}", "--plain-gets", 70, "--operations", OPERATIONS // len(SERVERS))
        assert "all in order" in out
        print(out)
    counts = bump.counts
    print(counts)
    assert counts["answered"] > 30 and counts["filled"] > 30 and counts["fills dead"] > 0, counts


class StaleCache:
    """Passes datagrams on, and answers one get in 20 with the first reply that it has seen to such a get."""

    def __init__(self, port: int):
        self.server = ("127.0.0.1", port)
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.behind: dict[tuple[str, int], socket.socket] = {}
        self.ended = threading.Event()
        self.gets = 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        first: dict[bytes, bytes] = {}
        asked: dict[tuple[socket.socket, bytes], bytes] = {}
        while not self.ended.is_set():
            for sock in select.select([self.sock, *self.behind.values()], [], [], 0.05)[0]:
                data, source = sock.recvfrom(65536)
                if sock is not self.sock:
                    if (request := asked.pop((sock, data[:2]), None)) is not None:
                        first.setdefault(request, data[8:])
                    client = next(address for address, one in self.behind.items() if one is sock)
                    self.sock.sendto(data, client)
                    continue
                if source not in self.behind:
                    self.behind[source] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    self.behind[source].connect(self.server)
                request = data[8:]
                if request.startswith(b"get ") and request.count(b" ") == 1:
                    self.gets += 1
                    if request in first and self.gets % 20 == 0:
                        self.sock.sendto(data[:8] + first[request], source)
                        continue
                    asked[self.behind[source], data[:2]] = request
                self.behind[source].send(data)

    def close(self) -> None:
        self.ended.set()
        self.thread.join()
        for sock in (self.sock, *self.behind.values()):
            sock.close()


@pytest.mark.parametrize("name", SERVERS)
def test_the_checker_by_datagrams_finds_what_is_old(name):
    """Without a cache on the way all is in order, with one that keeps copies for ever it is not."""
    def check(port: int) -> subprocess.CompletedProcess:
        return subprocess.run([rtl_tools.program("stress_run", "stress_run is not built"), f"--udp-server=127.0.0.1:{port}",
                               "--plain-gets", "70", "--operations", "3000"], capture_output=True, text=True, timeout=LOAD_S, check=False)

    server = start_server(require_target(name), ("-t", "1"), udp=True)
    try:
        done = check(server.port)
        assert done.returncode == 0 and "all in order" in done.stdout, done.stdout[-2000:]
        with contextlib.closing(StaleCache(server.port)) as cache:
            done = check(cache.port)
        assert done.returncode == 1 and "no order explains" in done.stdout, done.stdout[-2000:]
        assert "does not answer" not in done.stdout and "connection has failed" not in done.stdout, done.stdout[-2000:]
    finally:
        server.stop()


@pytest.mark.parametrize("arguments", [
    (), ("a",), ("a", "a"), ("a", "b", "--port"), ("a", "b", "--port", "0"), ("a", "b", "--port", "65536"),
    ("a", "b", "--port", "1x"), ("a", "b", "--fill-seconds", "256"), ("a", "b", "--other", "1")])
def test_wrong_arguments(arguments):
    done = subprocess.run([rtl_tools.program("nic-cache-rtl"), *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 64 and done.stderr.startswith("usage: nic-cache-rtl")


def test_a_name_that_no_interface_has():
    done = subprocess.run([rtl_tools.program("nic-cache-rtl"), "a-name-that-is-too-long", "b"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)
    assert done.returncode == 71 and "1 to 15 characters" in done.stderr
