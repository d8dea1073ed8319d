# SPDX-License-Identifier: Apache-2.0
"""The client library, over active messages and over TCP: the same calls, the same answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.patience import PATIENCE_S
from harness.servers import REPO_ROOT, free_port, is_sanitized
from harness.ucx import UcxServer, environment, find_ucx_program

sys.path.insert(0, str(REPO_ROOT / "src" / "client"))
import warpcache_client as wc  # noqa: E402

SIZES = (0, 1, 4, 100, 4096, 7990, 8000, 8001, 20_000, 60 * 1024, 61_441, 65_536, 65_537, 100_000, 524_288, 1_000_000)


def library() -> str:
    """For Python, which knows no sanitizer: a library with one cannot be loaded. The examples run under it."""
    path = str(Path(find_ucx_program("client_example")).with_name("libwarpcache_client.so"))
    if is_sanitized(path):
        pytest.skip("Python cannot load a library with a sanitizer")
    return path


@pytest.fixture(scope="module", params=("shm", "tcp"))
def server(request):
    with UcxServer("-m", "256", "-I", "4m", "-t", "2", transports=request.param) as started:
        yield started


@pytest.fixture(params=("ucx", "tcp"))
def client(request, server, monkeypatch):
    for name, value in environment(server.transports).items():
        monkeypatch.setenv(name, value)
    with wc.Client(library()) as made:
        made.set_timeout_ms(20_000)
        made.add_server("127.0.0.1", server.sockets.port, server.ucx_port if request.param == "ucx" else 0)
        assert made.transport("any") == request.param
        yield made


def value_of(size: int, seed: int = 0) -> bytes:
    return bytes((i * 31 + i // 251 + seed) % 256 for i in range(min(size, 5000))) * (size // 5000 + 1)


@pytest.mark.parametrize("size", SIZES)
def test_values_of_all_sizes(client, server, size):
    value = value_of(size, size)[:size]
    for round_number in range(3):
        key = f"size{size}-{round_number}"
        assert client.set(key, value, flags=size % 77)
        assert client.gets(key)[:2] == (value, size % 77)
    with server.sockets.connect() as sock:  # the same store
        reply = ask(sock, b"get size%d-1\r\n" % size, b"END\r\n")
    assert reply == b"VALUE size%d-1 %d %d\r\n%s\r\nEND\r\n" % (size, size % 77, size, value)


def test_conditions_and_numbers(client):
    client.delete("c")
    assert client.get("c") is None and not client.delete("c") and not client.touch("c", 10)
    assert not client.replace("c", b"x") and client.add("c", b"1") and not client.add("c", b"2")
    assert client.append("c", b"2") and client.prepend("c", b"0") and client.get("c") == b"012"
    _, _, cas = client.gets("c")
    assert client.cas("c", b"10", cas) and not client.cas("c", b"11", cas)
    assert client.incr("c", 5) == 15 and client.decr("c", 20) == 0 and client.incr("none") is None
    assert client.touch("c", 100) and client.delete("c") and not client.cas("c", b"x", cas)


def test_errors_are_named(client):
    for key in (b"", b"a b", b"x" * 251, b"line\r\nend"):
        with pytest.raises(wc.ClientError) as caught:
            client.set(key, b"x")
        assert caught.value.status == wc.BAD_ARGUMENT
    client.set("text", b"abc")
    with pytest.raises(wc.ClientError, match="non-numeric"):
        client.incr("text")
    with pytest.raises(wc.ClientError, match="too large"):
        client.set("huge", b"x" * (5 << 20))
    assert client.get("text") == b"abc"  # the stream is in step


def test_many_keys(client):
    keys = [f"many{i}" for i in range(300)]
    for i, key in enumerate(keys):
        assert client.set(key, value_of(i * 100, i)[: i * 100])
    found = client.mget([*keys, "missing"])
    assert found == {key.encode(): value_of(i * 100, i)[: i * 100] for i, key in enumerate(keys)}


def test_clients_in_threads(server, monkeypatch):
    for name, value in environment(server.transports).items():
        monkeypatch.setenv(name, value)
    failures = []
    path = library()

    def work(number: int) -> None:
        try:
            with wc.Client(path) as client:
                client.set_timeout_ms(20_000)
                client.add_server("127.0.0.1", server.sockets.port, server.ucx_port)
                for i in range(50):
                    value = value_of(i * 3000, number)[: i * 3000]
                    assert client.set(f"thread{number}", value) and client.get(f"thread{number}") == value
        except Exception as error:  # noqa: BLE001 - any failure is the test's result
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_falls_back_to_tcp(server):
    with wc.Client(library()) as client:
        client.set_timeout_ms(int(PATIENCE_S * 1000))
        client.add_server("127.0.0.1", server.sockets.port, free_port())
        assert client.set("fallen", b"back") and client.transport("fallen") == "tcp"
        assert client.get("fallen") == b"back"
    with wc.Client(library()) as client:
        client.add_server("127.0.0.1", 0, free_port())
        with pytest.raises(wc.ClientError) as caught:
            client.set("fallen", b"back")
        assert caught.value.status == wc.NO_SERVER


def test_a_server_that_goes_and_comes_back(server, monkeypatch):
    for name, value in environment(server.transports).items():
        monkeypatch.setenv(name, value)
    with wc.Client(library()) as client, UcxServer(transports=server.transports) as other:
        client.set_timeout_ms(int(PATIENCE_S * 1000))
        client.add_server("127.0.0.1", 0, other.ucx_port)
        assert client.set("a", b"1")
        client.set_timeout_ms(2000)
        other.sockets.process.kill()
        other.sockets.process.wait()
        with pytest.raises(wc.ClientError) as caught:
            client.get("a")
        assert caught.value.status in (wc.NO_SERVER, wc.TIMEOUT)
        # A new server at the same ports.
        program = other.sockets.command
        process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ})
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    assert client.get("a") is None
                    break
                except wc.ClientError:
                    assert time.monotonic() < deadline, "the client does not find the new server"
                    time.sleep(0.05)
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
        other.sockets.process = subprocess.Popen(["true"])
        other.sockets.process.wait()  # so that the signal of stop() does not end it


def test_timeout(server, monkeypatch):
    """A server that is stopped does not answer; the call ends in its time."""
    for name, value in environment(server.transports).items():
        monkeypatch.setenv(name, value)
    with UcxServer(transports=server.transports) as other, wc.Client(library()) as client:
        client.add_server("127.0.0.1", 0, other.ucx_port)
        client.set_timeout_ms(int(PATIENCE_S * 1000))
        assert client.set("a", b"1")
        client.set_timeout_ms(300)
        other.sockets.process.send_signal(signal.SIGSTOP)
        try:
            while Path(f"/proc/{other.sockets.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
                time.sleep(0.01)  # its threads stop one after the other
            begun = time.monotonic()
            with pytest.raises(wc.ClientError) as caught:
                client.get("a")
            assert caught.value.status == wc.TIMEOUT and time.monotonic() - begun < 30
        finally:
            other.sockets.process.send_signal(signal.SIGCONT)


def test_ketama_agrees_with_libmemcached(server, monkeypatch):
    pylibmc = pytest.importorskip("pylibmc")
    with UcxServer() as second:
        ports = [server.sockets.port, second.sockets.port]
        theirs = pylibmc.Client([f"127.0.0.1:{port}" for port in ports], behaviors={"ketama_weighted": True, "ketama_hash": "md5"})
        with wc.Client(library()) as client:
            client.set_timeout_ms(int(PATIENCE_S * 1000))
            for port in ports:
                client.add_server("127.0.0.1", port)
            for i in range(200):
                assert client.set(f"ketama{i}", b"%d" % i)
            assert [theirs.get(f"ketama{i}") for i in range(200)] == [b"%d" % i for i in range(200)]
        assert all(int(one.stats()["curr_items"]) > 20 for one in (server, second))


EXAMPLES = {"client_example": "hello flags 7, count 42, by {}\n", "client_example_cpp": "as stored, by {}\n"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples(server, name):
    program = find_ucx_program(name)
    for ucx_port, way in ((server.ucx_port, "ucx"), (0, "tcp")):
        result = subprocess.run(
            [program, "127.0.0.1", str(server.sockets.port), str(ucx_port)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={**os.environ, **environment(server.transports)},
        )
        assert result.stdout == EXAMPLES[name].format(way), result.stderr
