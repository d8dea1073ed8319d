# SPDX-License-Identifier: Apache-2.0
"""Under memcached's name, and options that are refused because they would have no effect."""

from __future__ import annotations

import os
import subprocess

import pytest
from harness.exchange import ask
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.servers import Target, start_server


def text_of(program, *options: str) -> str:
    done = subprocess.run([program, *options], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def program():
    # The simulated GPU's program is a script, which starts the one that this variable names.
    return os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)


@pytest.fixture
def memcached(tmp_path, program):
    """The server by a link of memcached's name."""
    link = tmp_path / "memcached"
    link.symlink_to(program)
    return link


def test_texts_begin_as_memcacheds(memcached, program):
    assert text_of(memcached, "-V") == "memcached 1.6.45\n"
    help_text = text_of(memcached, "-h")
    assert help_text.startswith("memcached 1.6.45\n")
    # What memcached's own tests look for before they start a server.
    for word in ("enable-ssl", "unix-socket", "no_drop_privileges", "TLS"):
        assert word in help_text
    for word in ("ext_path", "proxy_config"):  # what is not there
        assert word not in help_text
    assert text_of(program, "-V").startswith("warpcached ")


def test_it_serves_under_that_name(memcached):
    server = start_server(Target("warpcached", str(memcached)))
    with server.connect() as sock:
        # The version of that name.
        assert ask(sock, b"version\r\n").startswith(b"VERSION 1.6.45")
    assert server.stop() == 0
