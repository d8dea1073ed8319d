# SPDX-License-Identifier: Apache-2.0
"""memccapable: libmemcached's own check of a server, case by case."""

import re

import pytest

from clients.support import run_tool

# Both send `delete a b c d e`, to which memcached from 1.6.40 on answers otherwise than the
# tool of 2009 expects; memcached 1.6.18 still passes them.
CHANGED_SINCE = {"ascii delete", "ascii delete noreply"}
CASES = {"ascii": 27, "binary": 27}


@pytest.mark.parametrize("protocol", CASES)
def test_memccapable(server, target, protocol):
    flag = {"ascii": "-a", "binary": "-b"}[protocol]
    result = run_tool("memccapable", "-h", server.host, "-p", server.port, "-t", "2", flag)
    cases = dict(re.findall(r"^(\w[\w ]*?)\s+\[(\w+)\]\s*$", result.stdout, re.MULTILINE))
    assert len(cases) == CASES[protocol], result.stdout
    assert set(name.split()[0] for name in cases) == {protocol}
    failed = {name for name, verdict in cases.items() if verdict != "pass"}
    expected = CHANGED_SINCE if target.name == "warpcached" and protocol == "ascii" else set()
    assert failed == expected, result.stdout
