# SPDX-License-Identifier: Apache-2.0
"""warpcache-top, warpcache-dump and warpcache-restore, with warpcached and with memcached."""

from __future__ import annotations

import os
import pty
import random
import re
import subprocess
import threading
import time

import pytest
from faults.conftest import target  # noqa: F401
from faults.support import eventually, fetch, store
from harness.exchange import ask, ask_stats
from harness.patience import PATIENCE_S
from harness.servers import REPO_ROOT, Server, ServerError, find_target, start_server

TOOLS = REPO_ROOT / "src" / "tools"


@pytest.fixture
def servers(target):  # noqa: F811
    """Starts either server by name."""
    made: list[Server] = []

    def start(name: str = "warpcached", *options: str, **how) -> Server:
        program = target if name == "warpcached" else find_target(name)
        if (why := program.missing()) is not None:
            pytest.skip(why)
        made.append(start_server(program, options, **how))
        return made[-1]

    yield start
    for server in made:
        server.stop()


def address(server: Server) -> str:
    return server.socket_path or f"{server.host}:{server.port}"


def run(tool: str, server: Server, *options: str, stdin: bytes | None = None, status: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [TOOLS / tool, address(server), *options], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == status, done.stderr
    return done


def fill(server: Server) -> None:
    random.seed(7)
    with server.connect() as sock:
        for i in range(1500):
            value = random.randbytes(random.choice((0, 1, 10, 100, 5000)))
            # Some never expire, some soon, some at a date.
            exptime = (0, 3600, int(time.time()) + 60 * 24 * 3600)[i % 3]
            sock.sendall(b"set key%d %d %d %d\r\n%s\r\n" % (i, i * 2_000_003 % 2**32, exptime, len(value), value))
            assert sock.recv(100) == b"STORED\r\n"
        store(sock, b"large", random.randbytes(900_000))
        # A key that no text line can hold.
        assert ask(sock, b"ms AAEgCv8= 3 b F9\r\nbin\r\n") == b"HD\r\n"


def state(server: Server, keys: list[bytes]) -> dict[bytes, tuple]:
    found = {}
    with server.connect() as sock:
        for key in keys:
            sock.sendall(b"mg %s f s t v%s\r\n" % (key, b" b" if key.endswith(b"=") else b""))
            head = b""
            while not head.endswith(b"\r\n"):
                head += sock.recv(1)
            words = head.split()
            assert words[0] == b"VA", (key, head)
            value = b""
            while len(value) < int(words[1]) + 2:
                value += sock.recv(int(words[1]) + 2 - len(value))
            found[key] = (words[2], value, int(words[4][1:]))
    return found


KEYS = [b"key%d" % i for i in range(1500)] + [b"large", b"AAEgCv8="]


@pytest.mark.parametrize(("source", "sink"), [("warpcached", "warpcached"), ("warpcached", "memcached"), ("memcached", "warpcached")])
def test_items_move_from_server_to_server(servers, tmp_path, source, sink):
    first, second = servers(source), servers(sink)
    fill(first)
    file = tmp_path / "items"
    assert b"1502 items" in run("warpcache-dump", first, "-o", str(file)).stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"1502 items stored, 0 had expired, 0 refused" in run("warpcache-restore", second, "-i", str(file)).stderr
    began = time.monotonic()
    before, after = state(first, KEYS), state(second, KEYS)
    lasted = time.monotonic() - began  # so much less time is left for what was looked at last
    for key in KEYS:
        assert before[key][:2] == after[key][:2], key
        assert (before[key][2] == -1) == (after[key][2] == -1), key
        assert abs(before[key][2] - after[key][2]) <= 5 + lasted, key


def test_through_a_pipe_and_a_unix_socket_with_cas_ids(servers):
    first, second = servers(unix=True), servers("warpcached", "-m", "64")
    with first.connect() as sock:
        store(sock, b"key", b"value")
        cas = ask(sock, b"mg key c\r\n")
    items = run("warpcache-dump", first).stdout
    run("warpcache-restore", second, "--cas", stdin=items)
    with second.connect() as sock:
        assert ask(sock, b"mg key c\r\n") == cas


def pipeline(server: Server, requests: list[bytes], read) -> list:
    """What `read` makes of each reply. A GPU takes all of them together."""
    with server.connect() as sock, sock.makefile("rb") as replies:
        sender = threading.Thread(target=sock.sendall, args=(b"".join(requests),))
        sender.start()
        found = [read(replies) for _ in requests]
        sender.join()
    return found


def items_of(server: Server, keys: list[bytes]) -> dict[bytes, tuple[bytes, bytes, int, bytes]]:
    """Flags, CAS id, seconds to live and value of each item."""

    def read(replies):
        words = replies.readline().split()
        assert words[0] == b"VA", words
        return words[2], words[3], int(words[4][1:]), replies.read(int(words[1]) + 2)[:-2]

    requests = [b"mg %s f c t v%s\r\n" % (key, b" b" if key.endswith(b"=") else b"") for key in keys]
    return dict(zip(keys, pipeline(server, requests, read), strict=True))


@pytest.mark.long
@pytest.mark.parametrize(("source", "sink"), [("cuda", "cuda"), ("cpu", "cuda"), ("cuda", "cpu")])
def test_items_outlive_a_server_on_a_gpu(target, tmp_path, source, sink):  # noqa: F811
    """What stands for -e there: dump, end, start, restore. On the simulated GPU, where the server is built for it."""

    def start(engine: str) -> Server:
        try:
            return start_server(target, (f"--engine={engine}", "-m", "64"), env={"SIMT_GPU": "1"})
        except ServerError as error:
            if "GPU" in str(error) or "CUDA" in str(error):
                pytest.skip("the server has no GPU")
            raise

    first, file = start(source), tmp_path / "items"
    try:
        random.seed(7)
        keys, sets = [b"k%d" % i for i in range(400)], []
        for i, key in enumerate(keys):
            value = random.randbytes(random.choice((0, 1, 10, 100, 5000)))
            exptime = (0, 3600, int(time.time()) + 60 * 24 * 3600)[i % 3]
            sets.append(b"set %s %d %d %d\r\n%s\r\n" % (key, i * 11_000_003 % 2**32, exptime, len(value), value))
        sets.append(b"set large 1 0 900000\r\n%s\r\n" % random.randbytes(900_000))
        sets += [b"ms AAEgCv8= 3 b F9\r\nbin\r\n", b"set gone 0 -1 1\r\nx\r\n"]  # a key that no text line can hold
        keys += [b"large", b"AAEgCv8="]
        assert pipeline(first, sets, lambda replies: replies.readline()) == [b"STORED\r\n"] * 401 + [b"HD\r\n", b"STORED\r\n"]
        began = time.monotonic()
        before = items_of(first, keys)
        assert len({item[1] for item in before.values()}) == len(keys)  # the CAS ids differ
        assert b"402 items" in run("warpcache-dump", first, "-o", str(file)).stderr
    finally:
        assert first.stop() == 0
    second = start(sink)
    try:
        assert b"402 items stored, 0 had expired, 0 refused" in run("warpcache-restore", second, "--cas", "-i", str(file)).stderr
        after = items_of(second, keys)
        lasted = time.monotonic() - began
        for key, (flags, cas, ttl, value) in before.items():
            assert after[key][:2] == (flags, cas) and after[key][3] == value, key
            assert (ttl == -1) == (after[key][2] == -1) and (ttl == -1 or -1 <= ttl - after[key][2] <= 2 + lasted), key
        with second.connect() as sock:
            assert ask_stats(sock)["curr_items"] == "402"
            # A client that has read before may change the item afterwards, once.
            for answer in (b"STORED\r\n", b"EXISTS\r\n"):
                assert ask(sock, b"cas k1 0 0 1 %s\r\ny\r\n" % before[b"k1"][1][1:]) == answer
    finally:
        assert second.stop() == 0


def test_what_expired_is_left_out_and_what_is_there_is_kept(servers):
    first, second = servers(), servers()
    with first.connect() as sock:
        store(sock, b"stays", b"new")
        store(sock, b"other", b"new")
    items = run("warpcache-dump", first).stdout
    items = items.replace(b"end 2\n", b"item past - 0 1000000000 1 1\nx\nend 3\n")
    with second.connect() as sock:
        store(sock, b"stays", b"old")
        assert b"1 items stored, 1 had expired, 1 were there, 0 refused" in run("warpcache-restore", second, "--keep", stdin=items).stderr
        assert fetch(sock, b"stays") == b"old" and fetch(sock, b"other") == b"new" and fetch(sock, b"past") is None


@pytest.mark.parametrize("cut", [0, 5, 40, -1, -3])
def test_a_damaged_file_is_refused(servers, cut):
    first = servers()
    with first.connect() as sock:
        store(sock, b"key", b"value")
    items = run("warpcache-dump", first).stdout
    failure = run("warpcache-restore", first, stdin=items[:cut], status=1).stderr
    assert b"warpcache-restore: -: it " in failure


def test_refusals_are_told(servers):
    refused = servers("warpcached", "-X")
    assert b"key dump not allowed" in run("warpcache-dump", refused, status=1).stderr
    small = servers("warpcached", "-I", "1k")
    failure = run("warpcache-restore", small, stdin=b"warpcache-dump 1\nitem key - 0 0 1 5000\n%s\nend 1\n" % bytes(5000), status=2).stderr
    assert b"0 items stored" in failure and b"SERVER_ERROR" in failure


def test_a_login(servers):
    server = servers("warpcached", "-Y", "{file:users}", files={"users": "ann:secret\n"})
    with server.connect() as sock:
        ask(sock, b"set u 0 0 10\r\nann secret\r\n")
        store(sock, b"key", b"value")
    assert b"item key - 0 0 " in run("warpcache-dump", server, "--user", "ann", stdin=b"secret\n").stdout
    assert b"the login was refused" in run("warpcache-dump", server, "--user", "ann", stdin=b"wrong\n", status=1).stderr


@pytest.mark.parametrize("name", ["warpcached", "memcached"])
def test_top_as_text(servers, name):
    server = servers(name)
    with server.connect() as sock:
        if name == "warpcached":
            ask(sock, b"stats latency on\r\n")
        store(sock, b"key", b"value")
        process = subprocess.Popen([TOOLS / "warpcache-top", address(server), "-b", "2", "-i", "0.5"], stdout=subprocess.PIPE, text=True)
        while process.poll() is None:
            assert fetch(sock, b"key") == b"value"
            assert fetch(sock, b"none") is None
    text = process.stdout.read()
    assert process.returncode == 0
    assert re.search(r"hit ratio +(4\d|5\d)\.\d %", text)
    assert re.search(r"^get +[\d.]+k? +[\d.]+k?" + (r" +\d+\.\d +\d+\.\d +\d+\.\d$" if name == "warpcached" else ""), text, re.MULTILINE)
    assert "1 items" in text


def test_top_on_a_screen(servers):
    server = servers()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(TOOLS / "warpcache-top", ["warpcache-top", address(server), "-i", "0.1"])
    seen = b""
    while b"commands/s" not in seen:
        seen += os.read(terminal, 1 << 16)
    os.write(terminal, b"q")
    ended = []

    def has_ended() -> bool:
        ended.append(os.waitpid(pid, os.WNOHANG))
        return ended[-1][0] == pid

    assert eventually(has_ended)
    os.close(terminal)
    assert ended[-1][1] == 0


def test_no_server(servers):
    server = servers()
    server.stop()
    for tool in ("warpcache-top", "warpcache-dump"):
        assert b"refused" in run(tool, server, status=1).stderr
