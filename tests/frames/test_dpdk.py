# SPDX-License-Identifier: Apache-2.0
"""The server on a device of DPDK's: its TAP device, whose other side is a client's network namespace.

What is not for the server reaches the kernel of its own namespace, so its address is like any host's.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.fixtures import require_dpdk, require_target
from harness.network import enter_new_network, in_own_network
from harness.patience import PATIENCE_S
from harness.programs import find_load_generator
from harness.servers import Server, is_sanitized, start_server

from .support import frames_stats, ping, say, udp_to

CLIENT, SERVER = "10.9.0.1", "10.9.0.2"
DEVICE = "net_tap0,iface=frames0"
pytestmark = pytest.mark.usefixtures("no_huge_pages")


class Client:
    """A network namespace with one thread, to which DPDK's interface moves."""

    def __init__(self):
        if shutil.which("ip") is None:
            pytest.skip("there is no program ip")
        self.executor = concurrent.futures.ThreadPoolExecutor(1)
        self.thread_id = self.run(self._enter)

    def _enter(self) -> int:
        enter_new_network()
        return threading.get_native_id()

    def run(self, function):
        return self.executor.submit(function).result()

    def take(self, interface: str) -> None:
        """Moves an interface here from the caller's namespace."""
        subprocess.run(["ip", "link", "set", interface, "netns", str(self.thread_id)], check=True)
        for command in (f"ip addr add {CLIENT}/24 dev {interface}", f"ip link set {interface} up"):
            self.run(lambda command=command: subprocess.run(command.split(), check=True))

    def end(self) -> None:
        self.executor.shutdown()


def runtime_folder(pid: int) -> Path:
    """DPDK's folder of a server."""
    return Path(f"/var/run/dpdk/warpcached{pid}")


class DpdkServer:
    """A server at SERVER, by frames and by the kernel's sockets, and a client."""

    def __init__(self, *options: str):
        self.client = Client()
        kernel = f"--frames-kernel=kernel0,{SERVER}/24"
        arguments = (f"--frames=dpdk:{DEVICE}", kernel, "-l", SERVER, *options)
        self.server: Server = start_server(require_target("warpcached"), arguments)
        self.client.take("frames0")

    def __enter__(self):
        self.sock = socket.create_connection((SERVER, self.server.port), PATIENCE_S)
        return self

    def __exit__(self, *_):
        self.sock.close()
        assert self.server.stop() == 0, self.server.log()
        self.client.end()
        assert {name for _, name in socket.if_nameindex()} <= {"lo"}
        assert not runtime_folder(self.server.pid).exists()


def with_server(*options: str):
    """Runs the test with a server in a namespace of its own."""

    def decorate(test):
        @in_own_network
        def body():
            with DpdkServer(*options) as server:
                test(server)

        def run():
            require_dpdk()
            body()

        run.__name__ = test.__name__
        return run

    return decorate


@with_server("--udp-allow=10.0.0.0/8")
def test_udp_by_frames_and_tcp_by_the_kernel(server):
    def as_client():
        port = server.server.port
        with udp_to(SERVER, port) as udp, socket.create_connection((SERVER, port), PATIENCE_S) as tcp:
            assert say(udp, b"set a 5 0 3\r\nabc\r\n") == b"STORED\r\n"
            assert ask(tcp, b"get a\r\n", b"END\r\n") == b"VALUE a 5 3\r\nabc\r\nEND\r\n"
            large = b"x" * 3000
            assert ask(tcp, b"set b 0 0 3000\r\n%s\r\n" % large) == b"STORED\r\n"
            assert say(udp, b"get a b\r\n", 2).endswith(b"VALUE b 0 3000\r\n" + large + b"\r\nEND\r\n")
            assert say(udp, b"version\r\n", 3).startswith(b"VERSION ")

    server.client.run(as_client)
    stats = frames_stats(server.sock, "frames_requests", 3)
    assert stats["frames_requests"] == 3
    assert stats["frames_passed_on"] > 0 and stats["frames_from_kernel"] > 0
    # What the kernel sent while the interface moved is lost: from_kernel_failed may count it.
    for name in ("pass_failed", "send_failed", "receive_failed", "receive_missed"):
        assert stats["frames_" + name] == 0, name


@with_server()
def test_ping(server):
    server.client.run(lambda: ping(SERVER, 8))
    server.client.run(lambda: ping(SERVER, 4000))


def check_queues(server):
    def as_client():
        socks = [udp_to(SERVER, server.server.port) for _ in range(40)]
        for round_number in range(20):
            for number, sock in enumerate(socks):
                text = b"get key%d\r\n" if round_number else b"set key%d 0 0 1\r\nx\r\n"
                sock.send(struct.pack(">HHHH", number, 0, 1, 0) + text % number)
            for number, sock in enumerate(socks):
                reply = b"VALUE key%d 0 1\r\nx\r\nEND\r\n" % number if round_number else b"STORED\r\n"
                assert sock.recv(100) == struct.pack(">HHHH", number, 0, 1, 0) + reply
        for sock in socks:
            sock.close()

    server.client.run(as_client)
    assert frames_stats(server.sock, "frames_sent", 800)["frames_requests"] == 800


@with_server("--frames-queues=2")
def test_two_queues(server):
    check_queues(server)


@with_server("--frames-queues=3", "--frames-threads=2", "--frames-burst=32")
def test_more_queues_than_threads(server):
    check_queues(server)


@pytest.mark.not_on_gpu  # the threads of a simulated one would be bound, too
def test_threads_are_bound_to_cpus():
    require_dpdk()
    cpu = max(os.sched_getaffinity(0))
    options = ("--frames=dpdk:net_null0", "--frames-queues=2", f"--frames-cpus={cpu},{cpu}")
    server = start_server(require_target("warpcached"), options)
    try:
        with server.connect() as sock:  # an answer comes when all threads have begun
            assert ask(sock, b"mn\r\n", b"\r\n") == b"MN\r\n"
        tasks = Path(f"/proc/{server.pid}/task").iterdir()
        bound = [os.sched_getaffinity(int(task.name)) for task in tasks if (task / "comm").read_text().startswith("frames-")]
        assert bound == [{cpu}, {cpu}]
    finally:
        assert server.stop() == 0


@in_own_network
def test_refusals():
    require_dpdk()
    for options, text in (
        (["--frames=dpdk:net_nothing0"], "opening the device"),
        (["--frames=dpdk:0000:99:00.0"], "opening the device"),
        (["--frames=dpdk:" + DEVICE, "--frames-kernel=a-name-that-is-too-long"], "1 to 15 characters"),
        (["--frames=dpdk:" + DEVICE, "-d"], "-d cannot be had"),
        (["--frames=dpdk:" + DEVICE, "--frames-threads=2"], "at most the number of --frames-queues"),
        (["--frames=dpdk:" + DEVICE, "--frames=dpdk:net_null0"], "one DPDK device"),
        (["--frames=dpdk:" + DEVICE, "--frames-cpus=0,0"], "gives 2 CPUs to 1 threads: give one each"),
        (["--frames=dpdk:" + DEVICE, "--frames-cpus=1023"], "the server may not use CPU 1023"),
    ):
        command = [require_target("warpcached").path, "-u", "root", "-p", "-1", "-l", "127.0.0.1", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            out, error = process.communicate(timeout=PATIENCE_S)
        assert process.returncode != 0 and text in error, (options, out, error)
        assert "Usage" not in out
        assert not runtime_folder(process.pid).exists()


@in_own_network
def test_dpdk_that_does_not_start_leaves_no_folder():
    require_dpdk()
    target = require_target("warpcached")
    if is_sanitized(target.path):
        pytest.skip("the sanitizers occupy the address space")
    options = ("-u", "root", "-p", "-1", "-l", "127.0.0.1", "-m", "16", "-t", "1", "--frames=dpdk:net_null0")
    for megabytes in range(60, 600, 20):  # with the least the program itself does not start, with more DPDK does not
        command = ("prlimit", f"--as={megabytes << 20}", str(target.path), *options)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            _, error = process.communicate(timeout=PATIENCE_S)
        assert process.returncode != 0
        assert not runtime_folder(process.pid).exists()
        if "starting DPDK" in error:
            return
    pytest.fail(error)


def memif(role: str, folder: Path) -> str:
    return f"--frames=dpdk:net_memif0,role={role},socket={folder}/memif,socket-abstract=no"


def require_generator() -> Path:
    program = find_load_generator()
    if program is None:
        pytest.skip("warpcache-load is not built")
    return program


def generator(server: Server, folder: Path, *options: str, role: str = "server") -> list[str]:
    where = f"127.0.0.1:{server.port}"
    return [str(require_generator()), where, memif(role, folder), "--quiet", "-c", "16", "--warm-up", "0", *options]


@pytest.fixture
def memif_server(tmp_path, request):
    require_dpdk()
    options = getattr(request, "param", ())
    server = start_server(require_target("warpcached"), ("--udp-allow=10.0.0.0/8", memif("client", tmp_path), *options))
    yield server
    assert server.stop() == 0


LOADS = {
    "sets": ("--sets", "0.3"),
    "multiget": ("--sets", "0", "--multiget", "10"),
    "several-datagrams": ("--sets", "0.1", "--multiget", "20", "--sizes", "fixed:20:500"),
    "meta": ("--sets", "0.2", "--deletes", "0.1", "--look-aside", "--meta"),
    "paced": ("--rate", "10000"),
    "sampled": ("--sets", "0.1", "--verify-share", "0.1"),
}


@pytest.mark.parametrize("load", LOADS)
def test_memory_shared_with_another_process(memif_server, tmp_path, load):
    """The server starts before its peer. Every value is verified by the generator, or a sample."""
    options = (*LOADS[load], "--requests", "10000", "-P", "8", "--keys", "5000", "--json", "-", "--timeout", "20")
    done = subprocess.run(generator(memif_server, tmp_path, *options), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["requests"] > 0 and report["wrong"] == report["refused"] == 0
    assert report["hit_ratio"] == 1 or load == "meta" and report["hit_ratio"] > 0
    with memif_server.connect() as sock:
        stats = frames_stats(sock, "frames_requests", report["requests"])
        # The server's thread copies nothing, or a little where the peer is slow.
        assert stats["frames_copied_bytes"] < report["bytes_received"] / 2
        assert stats["frames_malformed"] == stats["frames_bad_checksum"] == 0
        answered = stats["frames_sent"] + stats["frames_send_failed"]
        assert answered == stats["frames_requests"] or "--multiget" in options and answered > stats["frames_requests"]


@pytest.mark.parametrize(
    "memif_server", [("--frames-queues=3",), ("--frames-queues=3", "--frames-threads=2")], indirect=True
)
def test_queues_of_shared_memory(memif_server, tmp_path):
    """Each of the generator's threads has a queue, on which its replies come."""
    options = ("-t", "3", "--requests", "10000", "--keys", "1000", "--json", "-", "--timeout", "20")
    done = subprocess.run(generator(memif_server, tmp_path, *options), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["requests"] > 0 and report["hit_ratio"] == 1


def test_requests_that_fit_into_no_frame(memif_server, tmp_path):
    command = generator(memif_server, tmp_path, "--sizes", "fixed:20:3000", "--seconds", "1")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 3 and "does not fit into a frame" in done.stderr, done.stdout + done.stderr


KILLS = 100 if "WARPCACHE_LONG_TESTS" in os.environ else 3


def kill_a_peer(server: Server, sock: socket.socket, folder: Path) -> None:
    """When it has been served. One that gives up by itself, as on a busy machine, is followed by another."""
    deadline = time.monotonic() + PATIENCE_S
    goal = frames_stats(sock, "frames_sent", 0)["frames_sent"] + 1000
    sent = 0
    while sent < goal:
        assert time.monotonic() < deadline
        command = generator(server, folder, "--seconds", "1000", "--keys", "100", "--no-verify")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
            try:
                while peer.poll() is None and sent < goal and time.monotonic() < deadline:
                    time.sleep(0.05)
                    sent = frames_stats(sock, "frames_sent", 0)["frames_sent"]
            finally:
                peer.kill()
        (folder / "memif").unlink(missing_ok=True)


@pytest.fixture
def zero_copy_server(tmp_path):
    require_dpdk()
    device = memif("client", tmp_path) + ",zero-copy=yes,rsize=12"  # half of the buffers
    server = start_server(require_target("warpcached"), ("--udp-allow=10.0.0.0/8", device))
    yield server
    assert server.stop() == 0


@pytest.mark.long
def test_zero_copy_peer_killed_and_restarted(zero_copy_server, tmp_path):
    """Huge pages or not. DPDK's driver keeps the buffers in its rings and closes the memory when a peer goes."""
    with zero_copy_server.connect() as sock:
        for _ in range(KILLS):
            kill_a_peer(zero_copy_server, sock, tmp_path)


def test_peer_killed_and_restarted(memif_server, tmp_path):
    with memif_server.connect() as sock:
        for _ in range(KILLS):
            kill_a_peer(memif_server, sock, tmp_path)
        assert ask(sock, b"version\r\n").startswith(b"VERSION ")


@pytest.mark.parametrize("role", ["server", "client"])
def test_peer_killed_while_it_connects(tmp_path, role):
    """Whoever listens, and however far a peer has come: the server serves the next one."""
    require_dpdk()
    require_generator()
    chance = random.Random(role)
    options = ("--frames-queues=2", "--frames-threads=2")
    server = start_server(require_target("warpcached"), ("--udp-allow=10.0.0.0/8", memif(role, tmp_path), *options))
    other = "client" if role == "server" else "server"
    for _ in range(KILLS):
        with subprocess.Popen(
            generator(server, tmp_path, "-t", "2", "--seconds", "1000", "--keys", "100", "--no-verify", role=other),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as peer:
            time.sleep(chance.random())
            peer.kill()
        shutil.rmtree(runtime_folder(peer.pid), ignore_errors=True)  # where it was killed while DPDK began
        if other == "server":
            (tmp_path / "memif").unlink(missing_ok=True)
    command = generator(server, tmp_path, "-t", "2", "--seconds", "1", "--keys", "100", "--timeout", "20", role=other)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.stop() == 0, server.log()
