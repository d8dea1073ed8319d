# SPDX-License-Identifier: Apache-2.0
"""Warm restart (-e): after a graceful stop the next server has all items; after any other end it is empty."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from faults.conftest import target  # noqa: F401
from faults.support import eventually, stats
from harness.exchange import ask, receive_until
from harness.patience import PATIENCE_S
from harness.servers import Server
from harness.servers import start_server as start

EXIT_REFUSED = 71


class Restarts:
    """Servers on one file, one after the other."""

    def __init__(self, target, file: Path) -> None:  # noqa: F811
        self.target = target
        self.file = file
        self.meta = Path(f"{file}.meta")
        self.servers: list[Server] = []

    def start(self, *options: str) -> Server:
        self.servers.append(
            start(self.target, ("-m", "64", "-t", "2", "-e", str(self.file), *options))
        )
        return self.servers[-1]

    def stop(self, number: int = signal.SIGUSR1) -> str:
        """Ends the server; its log."""
        server = self.servers[-1]
        server.process.send_signal(number)
        status = server.wait_exit()
        assert status == (0 if number != signal.SIGKILL else -signal.SIGKILL), server.log()
        assert "Sanitizer" not in server.log() and "runtime error" not in server.log()
        return server.log()


@pytest.fixture
def restarts(target, tmp_path):  # noqa: F811
    made = Restarts(target, tmp_path / "items")
    yield made
    for server in made.servers:
        server.stop()


def dump(server: Server) -> dict[str, str]:
    """Each key with its expiry, CAS id, size and flags. The time of access is left out."""
    with server.connect() as sock:
        text = ask(sock, b"lru_crawler metadump all\r\n", b"END\r\n").decode()
    lines = (re.sub(r" (la|fetch)=\S+", "", line) for line in text.splitlines()[:-1])
    pairs = (line.removeprefix("key=").split(" ", 1) for line in lines if line != "OK")
    return {unquote(key): rest for key, rest in pairs}


def set_all(server: Server, values: dict[str, bytes], flags: int = 0, exptime: int = 0) -> None:
    with server.connect() as sock:
        keys = iter(values)
        while part := list(itertools.islice(keys, 500)):
            sock.sendall(
                b"".join(
                    b"set %b %d %d %d noreply\r\n%b\r\n"
                    % (key.encode(), flags, exptime, len(values[key]), values[key])
                    for key in part
                )
                + b"mn\r\n"
            )
            assert receive_until(sock, b"MN\r\n") == b"MN\r\n"


def get(server: Server, key: str) -> bytes | None:
    with server.connect() as sock:
        reply = ask(sock, f"get {key}\r\n".encode(), b"END\r\n")
        return None if reply == b"END\r\n" else reply.split(b"\r\n", 1)[1][:-7]


def test_everything_comes_back(restarts):
    server = restarts.start()
    small = {f"key:{i}": b"v%d" % i * (1 + i % 40) for i in range(20_000)}
    large = {f"large:{n}": bytes([n]) * n * 100_000 for n in range(1, 10)}
    set_all(server, small, flags=7)
    set_all(server, large, flags=0xFFFFFFFF, exptime=3600)
    with server.connect() as sock:
        assert ask(sock, b"delete key:5\r\n") == b"DELETED\r\n"
        assert ask(sock, b"ms c 2 E12345 T600\r\nhi\r\n") == b"HD\r\n"
        assert ask(sock, b"ms YmluIGtleQ== 2 b\r\nhi\r\n") == b"HD\r\n"
    before = dump(server)
    assert len(before) == len(small) - 1 + len(large) + 2
    assert "the items are kept" in restarts.stop()
    assert restarts.meta.exists()

    server = restarts.start()
    assert f"{len(before)} items are back" in server.log()
    assert not restarts.meta.exists()
    assert dump(server) == before
    for key, value in [*large.items(), *itertools.islice(small.items(), 0, None, 997)]:
        assert get(server, key) == (None if key == "key:5" else value)
    values = stats(server)
    assert values["curr_items"] == str(len(before))
    assert int(values["uptime"]) < 3600
    with server.connect() as sock:
        assert ask(sock, b"mg c c v\r\n", b"hi\r\n") == b"VA 2 c12345\r\nhi\r\n"
        old = int(re.search(r"cas=(\d+)", before["key:6"])[1])
        assert ask(sock, b"cas key:6 0 0 3 %d\r\nnew\r\n" % old) == b"STORED\r\n"
        ask(sock, b"gets key:6\r\n", b"END\r\n")
        assert ask(sock, b"cas key:6 0 0 3 %d\r\nold\r\n" % old) == b"EXISTS\r\n"
        sock.sendall(b"mg key:6 c\r\n")
        newest = max(int(re.search(r"cas=(\d+)", line)[1]) for line in before.values())
        assert int(receive_until(sock, b"\r\n").split(b"c")[1]) > newest


def test_it_works_on_under_eviction_and_again(restarts):
    for round_number in range(4):
        server = restarts.start()
        kept = stats(server)["curr_items"]
        assert (kept == "0") == (round_number == 0)
        set_all(server, {f"r{round_number}:{i}": bytes(3000) for i in range(30_000)})
        assert int(stats(server)["evictions"]) > 0
        assert get(server, f"r{round_number}:29999") == bytes(3000)
        restarts.stop()
    server = restarts.start()
    assert get(server, "r3:29999") == bytes(3000)
    listed = dump(server)
    assert eventually(lambda: stats(server)["curr_items"] == str(len(dump(server))))
    assert len(listed) > 10_000


def test_time_goes_on_while_it_is_stopped(restarts):
    server = restarts.start()
    set_all(server, {"short": b"x"}, exptime=2)
    set_all(server, {"long": b"x"}, exptime=1000)
    with server.connect() as sock:
        assert ask(sock, b"mg long t\r\n").startswith(b"HD t")
        ask(sock, b"mg long t\r\n")
    restarts.stop()

    server = restarts.start()
    assert eventually(lambda: get(server, "short") is None)
    with server.connect() as sock:
        left = int(ask(sock, b"mg long t\r\n").removeprefix(b"HD t"))
    assert 900 < left <= 1000


def test_a_flush_is_kept(restarts):
    server = restarts.start()
    set_all(server, {"a": b"x"})
    with server.connect() as sock:
        assert ask(sock, b"flush_all\r\n") == b"OK\r\n"
    set_all(server, {"b": b"x"})
    restarts.stop()
    server = restarts.start()
    assert get(server, "a") is None
    assert get(server, "b") == b"x"


def test_a_flush_of_a_namespace_is_kept(restarts):
    server = restarts.start()
    set_all(server, {"a:1": b"one", "b:1": b"two", "c:1": b"three"})
    with server.connect() as sock:
        assert ask(sock, b"flush_prefix a:\r\n") == b"OK\r\n"
        assert ask(sock, b"flush_prefix b: 3600\r\n") == b"OK\r\n"
    restarts.stop()
    server = restarts.start()
    assert [get(server, key) for key in ("a:1", "b:1", "c:1")] == [None, b"two", b"three"]
    set_all(server, {"a:1": b"new"})
    with server.connect() as sock:
        assert ask(sock, b"debugtime 3601\r\n") == b"OK\r\n"
    assert eventually(lambda: get(server, "b:1") is None)
    assert [get(server, key) for key in ("a:1", "c:1")] == [b"new", b"three"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_another_end_keeps_nothing(restarts, number):
    set_all(restarts.start(), {"a": b"x"})
    restarts.stop(number)
    assert not restarts.meta.exists()
    server = restarts.start()
    assert "was not stopped by SIGUSR1" in server.log()
    assert get(server, "a") is None
    assert stats(server)["curr_items"] == "0"


def test_a_crash_after_a_restart_keeps_nothing(restarts):
    set_all(restarts.start(), {"a": b"x"})
    restarts.stop()
    assert get(restarts.start(), "a") == b"x"
    restarts.stop(signal.SIGKILL)
    assert get(restarts.start(), "a") is None


def test_another_size_keeps_nothing(restarts):
    set_all(restarts.start(), {"a": b"x"})
    restarts.stop()
    server = restarts.start("-m", "128")
    assert "-m or -o hashpower was another" in server.log()
    assert get(server, "a") is None


def test_other_threads_and_options_keep_all(restarts):
    set_all(restarts.start("-t", "4"), {"a": b"x", "b": b"y" * 500_000})
    restarts.stop()
    server = restarts.start("-t", "1", "-I", "2m", "-M", "-C")
    assert get(server, "a") == b"x"
    assert get(server, "b") == b"y" * 500_000


def test_damage_keeps_nothing(restarts):
    set_all(restarts.start(), {"a": b"x"})
    restarts.stop()
    restarts.meta.write_bytes(restarts.meta.read_bytes()[:-1])
    server = restarts.start()
    assert "damaged" in server.log()
    assert get(server, "a") is None


def refused(target, *options: str) -> str:  # noqa: F811
    done = subprocess.run(
        [target.path, "-u", "root", "-p", "-1", "-l", "127.0.0.1", *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == EXIT_REFUSED, done.stderr
    return done.stderr


def test_what_stops_the_start(restarts, target, tmp_path):  # noqa: F811
    restarts.start()
    assert "another server uses this file" in refused(target, "-e", str(restarts.file))
    foreign = tmp_path / "other.meta"
    foreign.write_text("")
    assert "is not a description" in refused(target, "-e", str(tmp_path / "other"))
    assert foreign.exists()
    assert "no regular file" in refused(target, "-e", "/dev/null")
    assert "cannot be opened" in refused(target, "-e", str(tmp_path / "no" / "folder"))


def test_a_stop_under_load_keeps_what_was_answered(restarts):
    server = restarts.start()
    answered = {}
    with server.connect() as busy, server.connect() as unfinished:
        unfinished.sendall(b"set half 0 0 500000\r\n" + bytes(200_000))
        for i in range(3000):
            key, value = f"k{i}", b"%d" % i * 20
            assert ask(
                busy, b"set %b 0 0 %d\r\n%b\r\n" % (key.encode(), len(value), value)
            ) == b"STORED\r\n"
            answered[key] = value
        server.process.send_signal(signal.SIGUSR1)
    assert server.wait_exit() == 0
    server = restarts.start()
    assert get(server, "half") is None
    assert set(dump(server)) == set(answered)
    for key in ("k0", "k1500", "k2999"):
        assert get(server, key) == answered[key]
