# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the system tests. Every server is started here and ended by its own pid."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from harness.servers import Server, ServerError, Target, find_target, start_server, stop_servers_of_failed_tests

# A server on a GPU takes some of its memory besides that for items, so tests/gpu/run keeps fewer.
MAX_SHARED_SERVERS = int(os.environ.get("SHARED_SERVERS_MAX", "8"))


def pytest_sessionfinish() -> None:
    stop_servers_of_failed_tests()


def require_module(name: str, library: str) -> None:
    """Skips the test where the server is built without `library`."""
    # The simulated GPU's program starts the one that this variable names.
    program = os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)
    if not Path(program).with_name(f"warpcached-{name}.so").exists():
        pytest.skip(f"the server is built without {library}")


def require_dpdk() -> None:
    require_module("dpdk", "DPDK")


@cache
def runs_on_gpu(target: Target) -> bool:
    server = start_server(target, unix=True)
    try:
        while "  engine    " not in server.log():  # it says what it is when it serves, which is after it listens
            assert server.alive(), server.log()
            time.sleep(0.01)
        return "  engine    cuda" in server.log()
    finally:
        server.stop()


def require_gpu(target: Target) -> None:
    if not runs_on_gpu(target):
        pytest.skip("needs the CUDA engine")


def on_gpu(target: Target, mode: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The options of a server on a GPU: the simulated one, where the server is built for it. Without any the test is skipped."""
    monkeypatch.setenv("SIMT_GPU", "1")
    if not starts_on_gpu(target):
        pytest.skip("the server has no GPU")
    return ("--engine=cuda", f"--gpu-mode={mode}", "-m", "64")


@cache
def starts_on_gpu(target: Target) -> bool:
    try:
        start_server(target, ("--engine=cuda", "-m", "64"), unix=True).stop()
    except ServerError as error:
        if "GPU" in str(error) or "CUDA" in str(error):
            return False
        raise
    return True


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=("warpcached", "memcached", "both"),
        default="both",
        help="which server the transcripts run against (default: both)",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests come first, so that none of them begins when all others are done.

    xdist's worksteal first gives each worker an equal share of the list, in one piece: each piece begins
    with its share of the long tests.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    long = [item for item in items if item.get_closest_marker("long")]
    short = iter([item for item in items if not item.get_closest_marker("long")])
    order: list[pytest.Item] = []
    for worker in range(workers):
        share = (len(items) - len(order)) // (workers - worker)
        own = long[worker::workers]
        order += own + list(islice(short, max(0, share - len(own))))
    items[:] = [*order, *short]


class ServerPool:
    """Keeps servers running between tests that ask for the same options."""

    def __init__(self) -> None:
        self._servers: OrderedDict[tuple, Server] = OrderedDict()

    def get(self, target: Target, options: tuple[str, ...], transport: str) -> Server:
        """A server for a transport of the transcripts: unix, udp, tcp6, or else TCP over IPv4."""
        unix, udp, ipv6 = transport == "unix", transport == "udp", transport == "tcp6"
        key = (target, options, unix, udp, ipv6)
        server = self._servers.pop(key, None)
        if server is not None and not server.alive():
            server.stop()
            server = None
        if server is None:
            server = start_server(target, options, unix=unix, udp=udp, ipv6=ipv6)
        self._servers[key] = server
        while len(self._servers) > MAX_SHARED_SERVERS:
            self._servers.popitem(last=False)[1].stop()
        return server

    def drop(self, server: Server) -> None:
        """Ends a server that a failed test may have left in an odd state."""
        self._servers = OrderedDict((k, s) for k, s in self._servers.items() if s is not server)
        server.stop()

    def stop_all(self) -> None:
        """Ends all servers. Raises if one of ours does not end with status 0."""
        statuses = {}
        for server in self._servers.values():
            server.ask_to_stop()
        while self._servers:
            server = self._servers.popitem()[1]
            status = server.stop()
            if server.target.name != "memcached" and status != 0:
                statuses[" ".join(server.command)] = status
        assert not statuses, f"servers that did not end well: {statuses}"


@pytest.fixture(scope="session")
def server_pool():
    pool = ServerPool()
    yield pool
    pool.stop_all()


def require_target(name: str) -> Target:
    """The target's program; a missing product fails, a missing reference skips."""
    target = find_target(name)
    why = target.missing()
    if why is not None:
        if name == "memcached":
            pytest.skip(why)
        pytest.fail(why, pytrace=False)
    return target
