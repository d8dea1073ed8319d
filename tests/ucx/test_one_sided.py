# SPDX-License-Identifier: Apache-2.0
"""--ucx-one-sided, an experiment: clients read copies of items from the server's memory (docs/ucx.md).

The rule: a value that a get returns was the key's at some moment between the call and its return.
"""

from __future__ import annotations

import subprocess
import threading
import time

import pytest
from harness.exchange import ask
from harness.patience import PATIENCE_S
from harness.ucx import UcxServer, environment

from .test_client import library, wc
from .test_isolation import wait_for

OPTION = "--ucx-one-sided=64"

pytestmark = pytest.mark.not_on_gpu(reason="copies are made of a store in the host's memory")


@pytest.fixture(scope="module", params=("shm", "tcp"))
def server(request):
    with UcxServer("-m", "64", "-t", "2", OPTION, transports=request.param) as started:
        yield started


def make_client(server: UcxServer, one_sided: bool = True):
    client = wc.Client(library())
    client.set_timeout_ms(int(PATIENCE_S * 1000))
    if one_sided:
        client.use_one_sided()
    client.add_server("127.0.0.1", server.sockets.port, server.ucx_port)
    assert client.transport("any") == "ucx"
    return client


@pytest.fixture
def connect(server, monkeypatch):
    """Makes clients of the server."""
    for name, value in environment(server.transports).items():
        monkeypatch.setenv(name, value)
    made = []

    def connect_one(one_sided: bool = True):
        made.append(make_client(server, one_sided))
        return made[-1]

    yield connect_one
    for client in made:
        client.close()


def read_copy(client, key: str):
    """Gets the key until that is a read of one side: the server makes the copy after the first get."""
    before = client.one_sided_reads()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = client.gets(key)
        if client.one_sided_reads() != before:
            return answer
        assert time.monotonic() < deadline, "no copy is made"


def test_values_are_read_without_a_request(server, connect):
    client = connect()
    for size in (0, 1, 300, 1024):
        value = bytes(i % 251 for i in range(size))
        assert client.set(f"size{size}", value, flags=size)
        asked = client.gets(f"size{size}")
        assert read_copy(client, f"size{size}") == asked and asked[:2] == (value, size)
    read_copy(client, "size300")  # another key may have had its slot
    gets = int(server.stats()["cmd_get"])
    reads = client.one_sided_reads()
    read_copy(client, "size300")
    assert client.one_sided_reads() == reads + 1 and int(server.stats()["cmd_get"]) == gets
    assert int(server.stats()["ucx_slots_filled"]) >= 4


def test_what_is_not_copied_is_asked_for(server, connect):
    client = connect()
    client.set("long", b"l" * 1025)
    client.set("mortal", b"m", expiry=1000)
    for _ in range(5):
        assert client.get("long") == b"l" * 1025 and client.get("mortal") == b"m" and client.get("nothing") is None
    assert client.one_sided_reads() == 0
    plain = connect(one_sided=False)
    for _ in range(5):
        assert plain.get("long") == b"l" * 1025
    assert plain.one_sided_reads() == 0


CHANGES = {
    "set": b"set k 7 0 3\r\nnew\r\n",
    "append": b"append k 0 0 1\r\n1\r\n",
    "incr": b"incr k 1\r\n",
    "delete": b"delete k\r\n",
    "touch": b"touch k 1000\r\n",
    "gat": b"gat 1000 k\r\n",
    "meta set": b"ms k 3\r\nnew\r\n",
    "stale": b"md k I T30\r\n",
    "flush": b"flush_all\r\n",
}


@pytest.mark.parametrize("change", CHANGES)
def test_who_has_seen_a_change_reads_no_copy_from_before(server, connect, change):
    """By sockets and by messages; the answer to the change comes, and then the copy is gone."""
    client, other = connect(), connect()
    for round_number in range(20):
        client.set("k", b"%d" % round_number)
        assert read_copy(client, "k")[0] == read_copy(other, "k")[0] == b"%d" % round_number
        reached = server.server if round_number % 2 else server.sockets
        with reached.connect() as sock:
            ask(sock, CHANGES[change], b"\r\n")
        answers = [one.gets("k") for one in (client, other)]
        with server.sockets.connect() as sock:
            now = ask(sock, b"mg k v f c\r\n", b"\r\n")
        for answer in answers:
            if answer is None:
                assert now.startswith(b"EN")
            else:
                assert now.startswith(b"VA") and b" f%d c%d" % answer[1:] in now and answer[0] in now


def test_a_delayed_flush_ends_copies(server, connect):
    """With a server of its own: such a flush ends what is stored in the second before it, too."""
    with UcxServer("-t", "2", OPTION, transports=server.transports) as own:
        client = make_client(own)
        try:
            client.set("k", b"x")
            assert read_copy(client, "k")[0] == b"x"
            with own.sockets.connect() as sock:
                assert ask(sock, b"flush_all 2\r\n", b"\r\n") == b"OK\r\n"
                wait_for(lambda: ask(sock, b"get k\r\n", b"END\r\n") == b"END\r\n", "the flush")
            assert client.get("k") is None
        finally:
            client.close()


def test_an_evicted_item_is_not_read(connect, server):
    with UcxServer("-m", "8", "-t", "2", OPTION, transports=server.transports) as own:
        client = make_client(own)
        try:
            client.set("k", b"first")
            assert read_copy(client, "k")[0] == b"first"
            with own.sockets.connect() as sock:
                for number in range(200):
                    key = b"filler%d" % number
                    assert ask(sock, b"set %s 0 0 100000\r\n%s\r\n" % (key, b"f" * 100_000), b"\r\n") == b"STORED\r\n"
                gone = ask(sock, b"mg k v\r\n", b"\r\n") == b"EN\r\n"
            assert (client.get("k") is None) == gone
        finally:
            client.close()


def test_readers_beside_writers_see_whole_values_in_order(server, connect):
    """Values of 1,000 bytes that repeat one number. A reader's number is at least the one that was stored when its get began, at
    most the last that was being stored when it ended. Sanitized or not, torn reads are only noticed by their checksum."""
    readers = [connect() for _ in range(2)]
    state = {"stored": 0, "begun": 0}
    stop = threading.Event()
    failures: list[str] = []
    counts = [0, 0]

    def value(number: int) -> bytes:
        return b"%07d," % number * 125

    def read(index: int) -> None:
        client = readers[index]
        try:
            while not stop.is_set():
                least = state["stored"]
                got = client.get("race")
                most = state["begun"]
                number = int(got[:7])
                assert got == value(number), "a torn value"
                assert least <= number <= most, f"{number} is not of {least} to {most}"
                counts[index] += 1
        except Exception as error:  # noqa: BLE001 - any failure is the test's result
            failures.append(f"{type(error).__name__}: {error}")

    with server.sockets.connect() as sock:
        assert ask(sock, b"set race 0 0 1000\r\n%s\r\n" % value(0), b"\r\n") == b"STORED\r\n"
        threads = [threading.Thread(target=read, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + PATIENCE_S
        number = 0
        while not failures and time.monotonic() < deadline:
            number += 1
            state["begun"] = number
            assert ask(sock, b"set race 0 0 1000\r\n%s\r\n" % value(number), b"\r\n") == b"STORED\r\n"
            state["stored"] = number
            if number % 5 == 0:  # so that copies are made, too
                time.sleep(0.002)
            if number >= 1500 and min(counts) >= 500 and sum(client.one_sided_reads() for client in readers) >= 100:
                break
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures
    assert sum(client.one_sided_reads() for client in readers) >= 100


def test_the_option_and_others(server):
    program = server.sockets.target.path
    result = subprocess.run([program, OPTION], capture_output=True, text=True, timeout=PATIENCE_S)
    assert result.returncode == 64 and "--ucx-one-sided needs --ucx" in result.stderr
    command = [program, "--ucx=127.0.0.1:1", OPTION, "-Y", "/dev/null"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert result.returncode == 64 and "cannot be had with -Y and -S" in result.stderr


def test_a_server_without_slots_is_asked(server, monkeypatch):
    for name, value in environment(server.transports).items():
        monkeypatch.setenv(name, value)
    with UcxServer("-t", "1", transports=server.transports) as own:
        client = make_client(own)
        try:
            assert client.set("k", b"x")
            assert [client.get("k") for _ in range(5)] == [b"x"] * 5
            assert client.one_sided_reads() == 0
        finally:
            client.close()
