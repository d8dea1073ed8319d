# SPDX-License-Identifier: Apache-2.0
"""Writers over TCP against readers over UDP, which the program answers as far as it has copies."""

from __future__ import annotations

import concurrent.futures
import os
import random
import threading
import time

import pytest
from harness.exchange import ask
from harness.network import in_own_network
from harness.patience import PATIENCE_S

from .support import NicServer, say

KEYS = 8
READS = 300_000 if "WARPCACHE_LONG_TESTS" in os.environ else 2500  # of a reader
READERS = 3
DELETE_EVERY = 10  # versions; such a version is a deletion
PAUSE_S_MIN = 0.002  # of the writer, so that there is time for copies
PAUSE_GROWTH = 1.01  # of each pause until the race is there: a slow server's copies live long enough, too


class Register:
    """A key with one writer, whose versions count up."""

    def __init__(self, number: int):
        self.key = b"key%d" % number
        self.sent = 0
        self.seen = 0  # the highest version that a reply has shown
        self.lock = threading.Lock()

    def show(self, version: int) -> None:
        with self.lock:
            self.seen = max(self.seen, version)

    def write(self, sock, udp=None) -> None:
        """Over TCP, or in a datagram."""
        self.sent += 1
        if self.sent % DELETE_EVERY == 0:
            assert ask(sock, b"delete %s\r\n" % self.key) == b"DELETED\r\n"
        else:
            text = b"%08d" % self.sent
            command = b"set %s 0 0 8\r\n%s\r\n" % (self.key, text)
            assert (say(udp, command) if udp else ask(sock, command)) == b"STORED\r\n"
        self.show(self.sent)

    def read(self, udp, number: int) -> None:
        """The version must be one that was current at some time since the request was sent."""
        least = self.seen
        reply = say(udp, b"get %s\r\n" % self.key, number % 65536)
        most = self.sent
        if reply == b"END\r\n":
            deleted = most // DELETE_EVERY * DELETE_EVERY
            assert least == 0 or deleted >= least, (self.key, least, most)
            # Which deletion it was is not known: it shows nothing later readers must see.
            return
        version = int(reply.split(b"\r\n")[1])
        assert least <= version <= most, (self.key, least, version, most)
        self.show(version)


def wait_for_race(server: NicServer, readers: list[concurrent.futures.Future]) -> None:
    """Until the program has answered, and a change has taken a copy from it: a busy machine copies late."""
    deadline = time.monotonic() + PATIENCE_S
    while server.count("hits") == 0 or server.stats()["dropped"] == 0:
        assert time.monotonic() < deadline, server.stats()
        if any(reader.done() for reader in readers):
            return  # it has failed
        time.sleep(0.05)


NOT_ON_GPU = pytest.mark.not_on_gpu(reason="accepted sets go to a store in the host's memory")


@pytest.mark.parametrize(
    "mode, policy",
    [("native", "forward"), ("generic", "forward"), ("native", "through"), pytest.param("native", "back", marks=NOT_ON_GPU)],
)
@in_own_network
def test_no_reader_sees_an_older_version(link, mode, policy):
    with NicServer(link(), mode, f"--nic-cache-write={policy}") as server:
        registers = [Register(number) for number in range(KEYS)]
        done, raced = threading.Event(), threading.Event()

        def write() -> None:
            with server.server.connect() as sock, server.udp() as udp:
                dice, pause_s = random.Random(1), PAUSE_S_MIN
                while not done.is_set():
                    dice.choice(registers).write(sock, udp if dice.random() < 0.5 else None)
                    done.wait(pause_s)
                    pause_s = PAUSE_S_MIN if raced.is_set() else pause_s * PAUSE_GROWTH

        def read(seed: int) -> None:
            dice, number = random.Random(seed), 0
            with server.udp() as udp:
                while number < READS or not raced.is_set():
                    dice.choice(registers).read(udp, number)
                    number += 1

        with concurrent.futures.ThreadPoolExecutor(READERS + 1) as executor:
            writer = executor.submit(write)
            readers = [executor.submit(read, seed) for seed in range(READERS)]
            try:
                wait_for_race(server, readers)
                raced.set()
                for reader in readers:
                    reader.result()
            finally:
                raced.set()
                done.set()
            writer.result()
        assert server.count("hits") > 0
        assert server.stats()["dropped"] > 0
        assert policy == "back" or server.count("writes") == 0
        assert server.stats()["lost_writes"] == 0
