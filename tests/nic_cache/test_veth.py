# SPDX-License-Identifier: Apache-2.0
"""Clients reach the server through its NIC cache, over a veth pair."""

from __future__ import annotations

import pytest
from harness.network import in_own_network

from .support import HOST6, Link, NicServer, say

MODES = pytest.mark.parametrize("mode", ["native", "generic"])


@pytest.fixture
def link():
    made = []

    def make() -> Link:
        made.append(Link())
        return made[-1]

    yield make
    for one in made:
        one.close()


@MODES
@in_own_network
def test_a_get_is_answered_before_the_stack(link, mode):
    with NicServer(link(), mode) as server, server.udp() as udp:
        assert server.tell(b"set a 5 0 3\r\nabc\r\n") == b"STORED\r\n"
        assert say(udp, b"get a\r\n") == b"VALUE a 5 3\r\nabc\r\nEND\r\n"
        server.wait_for("copies", 1)
        assert server.count("hits") == 0
        assert say(udp, b"get a\r\n", 7) == b"VALUE a 5 3\r\nabc\r\nEND\r\n"
        assert server.count("hits") == 1, str(server.stats())
