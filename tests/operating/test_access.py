# SPDX-License-Identifier: Apache-2.0
"""--access: what each user may do, in the text protocol (-Y) and the binary one (-S)."""

from __future__ import annotations

import base64
import signal
import subprocess

import bmemcached
import pytest
from faults.conftest import target  # noqa: F401
from faults.support import eventually
from harness.exchange import ask, ask_stats
from harness.patience import PATIENCE_S
from harness.servers import start_server

USERS = "ann:1\nbob:2\nroot:3\n"
RULES = "* r public:\nann rw app:\nbob r app:\nroot rwa\n"
DENIED = b"CLIENT_ERROR access denied\r\n"


@pytest.fixture
def serve(target, tmp_path):  # noqa: F811
    (tmp_path / "users").write_text(USERS)
    (tmp_path / "rules").write_text(RULES)
    servers = []

    def start(*options: str, env=None):
        servers.append(start_server(target, ("-t", "2", f"--access={tmp_path}/rules", *options), env=env))
        return servers[-1]

    yield start
    assert [server.stop() for server in servers] == [0] * len(servers)


@pytest.fixture
def server(serve, tmp_path):
    return serve("-Y", str(tmp_path / "users"))


def log_in(server, user: bytes, password: bytes):
    sock = server.connect()
    text = user + b" " + password
    assert ask(sock, b"set u 0 0 %d\r\n%s\r\n" % (len(text), text)) == b"STORED\r\n"
    return sock


@pytest.fixture
def clients(server):
    made = [log_in(server, user, password) for user, password in ((b"ann", b"1"), (b"bob", b"2"), (b"root", b"3"))]
    yield made
    for sock in made:
        sock.close()


def test_reading_and_writing_by_prefix(clients):
    ann, bob, root = clients
    assert ask(ann, b"set app:1 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert ask(root, b"set private 0 0 1\r\ny\r\n") == b"STORED\r\n"
    assert ask(root, b"set public:1 0 0 1\r\nz\r\n") == b"STORED\r\n"
    assert ask(bob, b"get app:1 private public:1\r\n", b"END\r\n") == b"VALUE app:1 0 1\r\nx\r\nVALUE public:1 0 1\r\nz\r\nEND\r\n"
    # What one may not read does not exist.
    assert ask(bob, b"get private\r\n") == b"END\r\n"
    assert ask(bob, b"mg private v\r\n") == b"EN\r\n"
    assert ask(root, b"mg private v\r\n", b"y\r\n") == b"VA 1\r\ny\r\n"
    for line in (b"set app:1 0 0 1\r\nb\r\n", b"delete app:1\r\n", b"incr app:1 1\r\n", b"touch app:1 5\r\n", b"ms app:1 1\r\nb\r\n", b"md app:1\r\n", b"me private\r\n"):
        assert ask(bob, line) == DENIED, line
    assert ask(bob, b"gat 100 app:1\r\n") == b"END\r\n"
    assert ask(ann, b"set other 0 0 1\r\nb\r\n") == DENIED
    # The connection stays in step, and quiet forms stay quiet.
    assert ask(bob, b"delete app:1 noreply\r\nmn\r\n") == b"MN\r\n"
    assert ask(bob, b"set app:1 0 0 1 noreply\r\nb\r\nget app:1\r\n", b"END\r\n") == b"VALUE app:1 0 1\r\nx\r\nEND\r\n"
    key = base64.b64encode(b"private")
    assert ask(bob, b"mg %s b v\r\n" % key) == b"EN\r\n"


def test_large_values_are_refused_too(clients):
    _, bob, root = clients
    large = bytes(900_000)
    for _ in range(100):  # none keeps its memory
        assert ask(bob, b"set app:1 0 0 %d\r\n%s\r\n" % (len(large), large)) == DENIED
    assert ask(root, b"set app:1 0 0 %d\r\n%s\r\n" % (len(large), large)) == b"STORED\r\n"


def test_administration(clients):
    ann, _, root = clients
    for line in (b"stats\r\n", b"flush_all\r\n", b"lru_crawler metadump all\r\n", b"watch fetchers\r\n", b"cache_memlimit 100\r\n"):
        assert ask(ann, line) == DENIED, line
    assert ask(ann, b"version\r\n").startswith(b"VERSION")
    assert int(ask_stats(root)["access_denied"]) == 5
    assert ask(root, b"flush_all\r\n") == b"OK\r\n"


def test_rules_are_read_again(server, clients, tmp_path):
    _, bob, _ = clients
    line = b"set app:1 0 0 1\r\nb\r\n"
    assert ask(bob, line) == DENIED
    (tmp_path / "rules").write_text("bob rubbish\n")
    server.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: "The old rules stay in force" in server.log())
    assert ask(bob, line) == DENIED
    (tmp_path / "rules").write_text("bob rw\n")
    server.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: ask(bob, line) == b"STORED\r\n")


def test_binary_clients(serve, tmp_path):
    server = serve("-S", env={"MEMCACHED_SASL_PWDB": str(tmp_path / "users")})
    address = f"{server.host}:{server.port}"
    ann = bmemcached.Client((address,), "ann", "1")
    bob = bmemcached.Client((address,), "bob", "2")
    assert ann.set("app:1", "value")
    assert bob.get("app:1") == "value"
    with pytest.raises(bmemcached.exceptions.MemcachedException, match="uth"):
        bob.set("app:1", "other")
    assert ann.get("app:1") == "value" and ann.get("private") is None
    ann.disconnect_all()
    bob.disconnect_all()


@pytest.mark.parametrize(
    ("options", "why"),
    [((), "needs logins"), (("-S",), "needs MEMCACHED_SASL_PWDB")],
)
def test_what_cannot_be_had(target, options, why):  # noqa: F811
    done = subprocess.run([target.path, "--access=rules", *options], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 64 and why in done.stderr


def test_flush_prefix_within_ones_prefix(clients):
    ann, bob, root = clients
    for key in (b"app:1", b"app:x:1", b"apple:1", b"public:1"):
        assert ask(root, b"set %s 0 0 1\r\nx\r\n" % key) == b"STORED\r\n"
    for line in (b"flush_prefix app\r\n", b"flush_prefix app:x:\r\n"):  # may read only
        assert ask(bob, line) == DENIED
    for line in (b"flush_prefix public\r\n", b"flush_prefix apple\r\n", b"flush_prefix ap\r\n", b"flush_all\r\n"):
        assert ask(ann, line) == DENIED
    assert ask(ann, b"flush_prefix public noreply\r\nmn\r\n") == b"MN\r\n"
    assert ask(root, b"get app:1 app:x:1 apple:1 public:1\r\n", b"END\r\n").count(b"VALUE ") == 4
    assert ask(ann, b"flush_prefix app:x\r\n") == b"OK\r\n"
    assert ask(ann, b"get app:1 app:x:1\r\n", b"END\r\n").count(b"VALUE ") == 1
    assert ask(ann, b"flush_prefix app\r\n") == b"OK\r\n"
    assert ask(ann, b"get app:1\r\n") == b"END\r\n"
    assert ask(root, b"flush_prefix public\r\n") == b"OK\r\n"
    assert ask(root, b"get apple:1 public:1\r\n", b"END\r\n").count(b"VALUE ") == 1
    denied = ask_stats(root)["access_denied"]
    assert int(denied) == 7
