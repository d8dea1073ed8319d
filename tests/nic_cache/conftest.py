# SPDX-License-Identifier: Apache-2.0
"""The veth pairs of the tests."""

from __future__ import annotations

import pytest
from harness.veth import Link


@pytest.fixture
def link():
    """Makes a veth pair, in the namespaces of the calling thread and of another one."""
    made = []

    def make(queues: int = 1) -> Link:
        made.append(Link(queues))
        return made[-1]

    yield make
    for one in made:
        one.close()
