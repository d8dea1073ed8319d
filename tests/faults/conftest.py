# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the fault tests. Whatever a test did to it, a server is still there at the test's end,
answers, holds no more connections and descriptors than before, and ends with status 0."""

from __future__ import annotations

import pytest
from harness.fixtures import require_target
from harness.servers import Server
from harness.servers import start_server as start

from faults import support


@pytest.fixture(scope="session")
def target():
    return require_target("warpcached")


def check_alive_and_clean(server: Server, descriptors: int) -> None:
    assert server.alive(), f"ended with {server.process.poll()}: {server.log()[-4000:]}"
    assert support.ask_once(server, b"mn\r\n") == b"MN\r\n"
    assert support.eventually(lambda: support.connections(server) == 0), "connections are left"
    assert support.eventually(lambda: support.descriptor_count(server) <= descriptors), (
        f"{support.descriptor_count(server)} descriptors, {descriptors} at the start"
    )
    log = server.log()
    for word in ("Sanitizer", "runtime error:", "assertion"):
        assert word not in log, log[-8000:]


@pytest.fixture
def start_server(target):
    """Starts servers of the test's own. A test closes its connections before it ends."""
    running: list[tuple[Server, int]] = []

    def starter(*options: str, **how) -> Server:
        server = start(target, options, **how)
        assert support.eventually(lambda: support.connections(server) == 0)
        running.append((server, support.descriptor_count(server)))
        return server

    yield starter
    statuses = []
    try:
        for server, descriptors in running:
            check_alive_and_clean(server, descriptors)
    finally:
        for server, _ in running:
            statuses.append(server.stop())
    assert statuses == [0] * len(statuses)


@pytest.fixture
def server(start_server):
    """64 MB, two workers, TCP and UDP."""
    return start_server("-m", "64", "-t", "2", udp=True)


@pytest.fixture
def closing(start_server):
    """A list of sockets that are closed at the test's end, before its servers are checked."""
    socks: list = []
    yield socks
    for sock in socks:
        sock.close()
