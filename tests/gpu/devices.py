# SPDX-License-Identifier: Apache-2.0
"""--gpu=N: the store is on that GPU and on no other, and partly in host memory if the GPU is too small.
Run by `tests/gpu/run FOLDER devices`, one test at a time, with all GPUs free."""

from __future__ import annotations

import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness import exchange
from harness.servers import Server, ServerError, find_target, start_server

STORE_MIB = 4096
OTHERS_MIB = 200  # by which the memory in use may change for other reasons


def memory_mib(what: str) -> list[int]:
    """The memory of each GPU that is `used`, or `free`."""
    command = ["nvidia-smi", f"--query-gpu=memory.{what}", "--format=csv,noheader,nounits"]
    return [int(line) for line in subprocess.check_output(command, text=True).split()]


def ask(server: Server, request: bytes, end: bytes) -> bytes:
    with server.connect() as sock:
        return exchange.ask(sock, request, end)


def start_on(gpu: int, mode: str, mib: int = STORE_MIB) -> Server:
    return start_server(find_target("warpcached"), [f"--gpu={gpu}", f"--gpu-mode={mode}", "-m", str(mib)])


@pytest.mark.parametrize("mode", ["launch", "persistent"])
def test_a_store_is_on_the_chosen_gpu(mode):
    servers = []
    try:
        for gpu in range(len(memory_mib("used"))):
            before = memory_mib("used")
            servers.append(start_on(gpu, mode))
            taken = [now - then for now, then in zip(memory_mib("used"), before, strict=True)]
            assert taken[gpu] > STORE_MIB, taken
            assert all(abs(mib) < OTHERS_MIB for other, mib in enumerate(taken) if other != gpu), taken
            assert f"on GPU {gpu} " in servers[gpu].log()
        for gpu, server in enumerate(servers):
            assert ask(server, b"set key 0 0 1\r\n%d\r\n" % gpu, b"\r\n") == b"STORED\r\n"
        for gpu, server in enumerate(servers):
            assert ask(server, b"get key\r\n", b"END\r\n") == b"VALUE key 0 1\r\n%d\r\nEND\r\n" % gpu
        while servers:
            assert servers.pop(0).stop() == 0
            for server in servers:  # the others continue
                assert ask(server, b"get key\r\n", b"END\r\n").startswith(b"VALUE")
    finally:
        for server in servers:
            server.stop()


def test_a_missing_gpu_is_refused():
    gpus = len(memory_mib("used"))
    with pytest.raises(ServerError, match=f"there is no GPU {gpus}, only 0 to {gpus - 1}"):
        start_on(gpus, "launch")


VALUE_BYTES = 1_000_000
NOISE = random.Random(7).randbytes(VALUE_BYTES)
FREE_MIB = 3000  # of the GPU
SERVER_MIB = 1200  # of a GPU, that a server takes besides -m


def value_of(key: int) -> bytes:
    return b"%16d" % key + NOISE[16:-16] + b"%16d" % key


def exchange_large(server: Server, keys: range, *, store: bool) -> int:
    """Stores a value under each key, or reads them: how many were stored or found, whole."""
    done = 0
    with server.connect() as sock, sock.makefile("rb") as replies:
        for key in keys:
            if store:
                sock.sendall(b"set %d 0 0 %d\r\n" % (key, VALUE_BYTES) + value_of(key) + b"\r\n")
                done += replies.readline() == b"STORED\r\n"
                continue
            sock.sendall(b"get %d\r\n" % key)
            if replies.readline() != b"END\r\n":
                assert replies.read(VALUE_BYTES) == value_of(key)
                assert replies.read(7) == b"\r\nEND\r\n"
                done += 1
    return done


@pytest.mark.parametrize("mode", ["launch", "persistent"])
def test_what_does_not_fit_on_the_gpu_is_in_host_memory(mode):
    """Other servers use most of the GPU; more is stored than the rest of it holds, and comes back from both places."""
    servers = []
    try:
        while (free := memory_mib("free")[0]) > FREE_MIB + SERVER_MIB + 100:
            servers.append(start_on(0, "launch", min(free - FREE_MIB - SERVER_MIB, free * 4 // 5)))
            assert "in the host's memory" not in servers[-1].log()
        server = start_on(0, mode, 2 * FREE_MIB)
        servers.append(server)
        on_host = int(re.search(r"(\d+) MiB of the items in the host's memory", server.log()).group(1))
        assert FREE_MIB <= on_host < 2 * FREE_MIB
        keys = 5 * FREE_MIB // 3
        workers = 8
        shares = [range(worker, keys, workers) for worker in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            stored = sum(pool.map(lambda share: exchange_large(server, share, store=True), shares))
            found = sum(pool.map(lambda share: exchange_large(server, share, store=False), shares))
        assert (stored, found) == (keys, keys)
    finally:
        for server in servers:
            server.stop()
