# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs over active messages, by libwarpcache_preload.so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness.patience import PATIENCE_S
from harness.servers import free_port, is_sanitized
from harness.ucx import UcxServer, environment, find_ucx_program

TIME_S_MAX = PATIENCE_S
PYLIBMC = """
import pylibmc, sys
client = pylibmc.Client(["127.0.0.1:" + sys.argv[1]], binary=sys.argv[2] == "binary", behaviors={"tcp_nodelay": True})
assert client.set("key", "value") and client.get("key") == "value"
large = bytes(range(256)) * 3000
assert client.set("large", large) and client.get("large") == large
assert client.set_multi({f"k{i}": i for i in range(500)}) == []
assert client.get_multi([f"k{i}" for i in range(500)]) == {f"k{i}": i for i in range(500)}
assert client.incr("k7", 5) == 12 and client.delete("key") and client.get("key") is None
"""
FORKED = """
import os, sys
from pymemcache.client.base import Client
def check(key):
    client = Client(("127.0.0.1", int(sys.argv[1])))
    assert client.set(key, b"value", noreply=False) and client.get(key) == b"value"
    client.close()
check("parent")
child = os.fork()
check("child" if child == 0 else "parent-again")
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def preload() -> Path:
    return Path(find_ucx_program("client_example")).with_name("libwarpcache_preload.so")


@pytest.fixture(scope="module", params=("shm", "tcp"))
def server(request):
    with UcxServer("-m", "256", "-t", "2", transports=request.param) as started:
        yield started


def run(server, command: list[str], ucx_port: int | None = None) -> tuple[str, int]:
    """Returns its output, and how many endpoints it has opened."""
    before = int(server.stats()["ucx_opened"])
    routes = f"127.0.0.1:{server.sockets.port}={ucx_port or server.ucx_port}"
    env = {**os.environ, **environment(server.transports), "LD_PRELOAD": str(preload()), "WARPCACHE_UCX": routes}
    if is_sanitized(str(preload())):
        pytest.skip("a program without the sanitizers cannot load this build")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIME_S_MAX)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr, int(server.stats()["ucx_opened"]) - before


@pytest.mark.parametrize("protocol", ("text", "binary"))
def test_pylibmc(server, protocol):
    pytest.importorskip("pylibmc")
    _, opened = run(server, [sys.executable, "-c", PYLIBMC, str(server.sockets.port), protocol])
    assert opened > 0


def test_memcslap(server):
    program = shutil.which("memcslap")
    if program is None:
        pytest.skip("libmemcached's tools are not installed")
    arguments = [f"--servers=127.0.0.1:{server.sockets.port}", "--concurrency=4", "--execute-number=200", "--test=get"]
    out, opened = run(server, [program, *arguments])
    assert opened >= 4 and "Time" in out


def test_a_child_goes_on_by_tcp(server):
    _, opened = run(server, [sys.executable, "-c", FORKED, str(server.sockets.port)])
    assert opened == 2  # of the parent


def test_a_server_without_active_messages_is_reached_by_tcp(server):
    _, opened = run(server, [sys.executable, "-c", FORKED, str(server.sockets.port)], ucx_port=free_port())
    assert opened == 0
