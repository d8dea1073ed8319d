# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the client tests.

The clients run against warpcached; `--target=memcached` runs the same tests against the
reference instead, which proves the tests.
"""

import pytest
from harness.fixtures import require_target
from harness.servers import start_server as start

from clients.support import dialogue


@pytest.fixture(scope="session")
def target(request):
    chosen = request.config.getoption("--target")
    return require_target("memcached" if chosen == "memcached" else "warpcached")


@pytest.fixture
def server(target, server_pool):
    """A shared server, empty and with fresh statistics at the start of each test."""
    shared = server_pool.get(target, (), "udp")  # TCP and UDP on one port
    assert dialogue(shared, b"flush_all\r\n", b"\r\n") == b"OK\r\n"
    assert dialogue(shared, b"stats reset\r\n", b"\r\n") == b"RESET\r\n"
    yield shared
    assert shared.alive(), shared.log()


@pytest.fixture
def start_server(target):
    """Starts servers of the test's own; all are ended when the test ends."""
    running = []

    def start_one(options=(), **how):
        running.append(start(target, list(options), **how))
        return running[-1]

    yield start_one
    alive = [one for one in running if one.alive()]
    for one in alive:
        one.ask_to_stop()
    statuses = {one.pid: one.stop() for one in running}
    if target.name != "memcached":
        assert [statuses[one.pid] for one in alive] == [0] * len(alive)
