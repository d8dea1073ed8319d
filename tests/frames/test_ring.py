# SPDX-License-Identifier: Apache-2.0
"""--frames=ring: DPDK's rings between a server, DPDK's primary process, and a load generator, its secondary one.

It needs huge pages, which the tests reserve and give back; where they cannot, they are skipped. src/io/frames/dpdk/ring_port_test.cc
has both sides in one process without huge pages, and what a peer that is out of its mind writes to the rings.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.fixtures import require_dpdk, require_target
from harness.frame_servers import RING_MEGABYTES
from harness.huge_pages import huge_pages
from harness.patience import PATIENCE_S
from harness.programs import find_load_generator
from harness.servers import Server, start_server

from .support import frames_stats

KILLS = 100 if "WARPCACHE_LONG_TESTS" in os.environ else 3
MEGABYTES = {1: RING_MEGABYTES, 3: 182}  # by the server's queues


def name() -> str:
    return f"test{os.getpid()}"


def left_behind(folder: Path) -> list[Path]:
    """Of the ring's files."""
    return [*folder.glob(f"warpcache-ring-{name()}*"), *Path("/var/run/dpdk").glob(f"warpcache-ring-{name()}*")]


def start(*options: str) -> Server:
    return start_server(require_target("warpcached"), ("--udp-allow=10.0.0.0/8", f"--frames=ring:{name()}", *options))


@pytest.fixture
def pages(request):
    require_dpdk()
    if find_load_generator() is None:
        pytest.skip("warpcache-load is not built")
    with huge_pages(MEGABYTES[getattr(request, "param", 1)]) as folder:
        yield folder


@pytest.fixture
def server(pages, request):
    started = start(*getattr(request, "param", ()))
    assert started.process.poll() is None, started.log()
    yield started
    assert started.stop() == 0
    assert left_behind(pages) == []


def generator(server: Server, *options: str) -> list[str]:
    where = [f"127.0.0.1:{server.port}", f"--frames=ring:{name()}"]
    return [str(find_load_generator()), *where, "--quiet", "-c", "16", "--warm-up", "0", *options]


def loaded(server: Server, *options: str) -> dict:
    command = generator(server, *options, "--requests", "10000", "--json", "-", "--timeout", "20")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["requests"] > 0 and report["wrong"] == report["refused"] == 0
    assert report["hit_ratio"] == 1
    return report


LOADS = {
    "sets": ("--sets", "0.3"),
    "multiget": ("--sets", "0", "--multiget", "10"),
    "several-datagrams": ("--sets", "0.1", "--multiget", "20", "--sizes", "fixed:20:500"),
    "paced": ("--rate", "10000"),
}


@pytest.mark.parametrize("load", LOADS)
def test_every_value_is_right(server, load):
    report = loaded(server, *LOADS[load], "-P", "8", "--keys", "5000")
    with server.connect() as sock:
        stats = frames_stats(sock, "frames_requests", report["requests"])
    # The server's thread copies nothing, or a little where the peer is slow.
    assert stats["frames_copied_bytes"] < report["bytes_received"] / 2
    for counter in ("malformed", "bad_checksum", "receive_failed", "receive_missed", "replies_dropped"):
        assert stats["frames_" + counter] == 0, counter


@pytest.mark.parametrize("pages", [3], indirect=True)
@pytest.mark.parametrize("server", [("--frames-queues=3",), ("--frames-queues=3", "--frames-threads=2")], indirect=True)
def test_queues(server):
    """Each of the generator's threads has a queue; it may leave some out."""
    for threads in ("3", "2"):
        loaded(server, "-t", threads, "--keys", "1000")


FILTERED = pytest.param(("-o", "drop_privileges"), id="filtered", marks=pytest.mark.not_on_gpu)


@pytest.mark.parametrize("server", [pytest.param((), id=""), FILTERED], indirect=True)
def test_peer_killed_and_restarted(server, pages):
    """However often it is killed, the next one is served, and its predecessors' files are gone."""
    with server.connect() as sock:
        for _ in range(KILLS):
            before = frames_stats(sock, "frames_requests", 0)["frames_requests"]
            command = generator(server, "--seconds", "1000", "--keys", "100", "--no-verify")
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
                after = frames_stats(sock, "frames_requests", before + 1000)["frames_requests"]
                peer.kill()
            assert after >= before + 1000
        loaded(server, "--keys", "1000")
        runtime = Path(f"/var/run/dpdk/warpcache-ring-{name()}")
        assert not [file for file in runtime.iterdir() if str(peer.pid) in file.name]
        assert ask(sock, b"version\r\n").startswith(b"VERSION ")


def test_peer_killed_at_its_start(server):
    """At moments of its way into the shared memory."""
    for number in range(KILLS):
        command = generator(server, "--seconds", "1000", "--keys", "100")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
            try:
                peer.wait(number % 20 * 0.02)
            except subprocess.TimeoutExpired:
                peer.kill()
    loaded(server, "--keys", "1000")


def test_server_killed_and_restarted(pages):
    """A peer of a server that has ended ends, and the next server removes what the last has left."""
    for _ in range(2):
        server = start()
        command = generator(server, "--seconds", "1000", "--keys", "100")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as peer:
            with server.connect() as sock:
                frames_stats(sock, "frames_requests", 1000)
            server.process.kill()
            _, errors = peer.communicate(timeout=PATIENCE_S)
        assert peer.returncode == 3 and "the frames have ended" in errors
        server.stop()
        assert left_behind(pages) != []
    server = start()
    loaded(server, "--keys", "1000")
    assert server.stop() == 0
    assert left_behind(pages) == []


def refused(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode != 0 and "Usage" not in done.stdout, done.stdout + done.stderr
    return done.stderr


# Its sockets are refused, if nothing else is: it does not stay.
def second_server(*options: str) -> str:
    return refused([require_target("warpcached").path, "-u", "root", "-p", "-1", "-l", "127.0.0.1", *options])


@pytest.mark.not_on_gpu(reason="who may have the rings is no matter of the engine")
def test_one_server_and_one_peer(server):
    assert f"--frames=ring:{name()}: another server has it." in second_server(f"--frames=ring:{name()}")
    command = generator(server, "--seconds", "1000", "--keys", "100")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
        with server.connect() as sock:
            frames_stats(sock, "frames_requests", 1000)
            # Each waits ten seconds for it to end: it takes no processor from others meanwhile.
            peer.send_signal(signal.SIGSTOP)
            assert "another process is its other side" in refused(generator(server))
            assert "another process is its other side" in refused(generator(server))
            peer.send_signal(signal.SIGCONT)
            before = frames_stats(sock, "frames_requests", 0)["frames_requests"]
            assert frames_stats(sock, "frames_requests", before + 1000)["frames_requests"] > before
        peer.kill()
    assert "its server has 1 queues" in refused(generator(server, "-t", "2"))
    loaded(server, "--keys", "1000")


@pytest.mark.not_on_gpu
def test_without_huge_pages():
    """It says what it needs. Nothing is left behind."""
    require_dpdk()
    errors = second_server(f"--frames=ring:{name()}", "--frames-queues=64")
    # Another test may have the one and not the other meanwhile.
    assert "mount -t hugetlbfs none /dev/hugepages" in errors or "MB in huge pages of 2 MB, and" in errors
    assert not Path(f"/var/run/dpdk/warpcache-ring-{name()}").exists()


@pytest.mark.not_on_gpu
def test_refusals():
    require_dpdk()
    ring = f"--frames=ring:{name()}"
    for options, text in (
        (["--frames=ring:"], "ring:NAME"),
        (["--frames=ring:a/b"], "ring:NAME"),
        (["--frames=ring:" + "a" * 33], "ring:NAME"),
        ([ring, "-d"], "-d cannot be had"),
        ([ring, "--frames=dpdk:net_null0"], "one DPDK device, or one ring"),
        ([ring, "--frames-kernel=kernel0"], "--frames-kernel and --frames-gpu need --frames=dpdk:DEVICE"),
    ):
        assert text in second_server(*options)
    load = find_load_generator()
    if load is not None:
        assert "there is no server with it" in refused([str(load), "127.0.0.1:1", f"--frames=ring:{name()}-none"])
