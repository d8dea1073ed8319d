# SPDX-License-Identifier: Apache-2.0
"""--gpu=N: the store is on that card and on no other, and partly in the host's memory where the card is too small.
Run by `tests/gpu/run FOLDER cards`, one test at a time and with the cards free."""

from __future__ import annotations

import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness import exchange
from harness.servers import Server, ServerError, find_target, start_server

STORE_MIB = 4096
OTHERS_MIB = 200  # what a card's use may change by that has nothing to do with it


def memory_mib(what: str) -> list[int]:
    """What is `used` of the memory of each card, or `free`."""
    command = ["nvidia-smi", f"--query-gpu=memory.{what}", "--format=csv,noheader,nounits"]
    return [int(line) for line in subprocess.check_output(command, text=True).split()]


def ask(server: Server, request: bytes, end: bytes) -> bytes:
    with server.connect(30.0) as sock:
        return exchange.ask(sock, request, end)


def start_on(card: int, mode: str, mib: int = STORE_MIB) -> Server:
    return start_server(find_target("warpcached"), [f"--gpu={card}", f"--gpu-mode={mode}", "-m", str(mib)])


@pytest.mark.parametrize("mode", ["launch", "persistent"])
def test_a_store_is_on_the_card_asked_for(mode):
    servers = []
    try:
        for card in range(len(memory_mib("used"))):
            before = memory_mib("used")
            servers.append(start_on(card, mode))
            taken = [now - then for now, then in zip(memory_mib("used"), before, strict=True)]
            assert taken[card] > STORE_MIB, taken
            assert all(abs(mib) < OTHERS_MIB for other, mib in enumerate(taken) if other != card), taken
            assert f"on GPU {card} " in servers[card].log()
        for card, server in enumerate(servers):
            assert ask(server, b"set key 0 0 1\r\n%d\r\n" % card, b"\r\n") == b"STORED\r\n"
        for card, server in enumerate(servers):
            assert ask(server, b"get key\r\n", b"END\r\n") == b"VALUE key 0 1\r\n%d\r\nEND\r\n" % card
        while servers:
            assert servers.pop(0).stop() == 0
            for server in servers:  # the others go on
                assert ask(server, b"get key\r\n", b"END\r\n").startswith(b"VALUE")
    finally:
        for server in servers:
            server.stop()


def test_a_card_that_is_not_there_is_refused():
    cards = len(memory_mib("used"))
    with pytest.raises(ServerError, match=f"there is no GPU {cards}, only 0 to {cards - 1}"):
        start_on(cards, "launch")


VALUE_BYTES = 1_000_000
NOISE = random.Random(7).randbytes(VALUE_BYTES)
FREE_MIB = 3000  # of the small card
SERVER_MIB = 1200  # what a server takes of a card besides -m


def value_of(key: int) -> bytes:
    return b"%16d" % key + NOISE[16:-16] + b"%16d" % key


def exchange_large(server: Server, keys: range, *, store: bool) -> int:
    """Stores a value under each key, or reads them: how many were stored or found, whole."""
    done = 0
    with server.connect(60.0) as sock, sock.makefile("rb") as replies:
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
def test_what_a_card_does_not_hold_is_in_the_hosts_memory(mode):
    """Other servers leave little of the card; what is stored is more than that, and comes back from both places."""
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
