# SPDX-License-Identifier: Apache-2.0
"""The simulated core for TCP clients, as `server` of the tests in tests/clients."""

import re
import signal
import socket
import subprocess
from types import SimpleNamespace

import pytest
import rtl_tools

LIMIT_S = 60


@pytest.fixture(scope="session")
def tcp_core():
    process = subprocess.Popen([rtl_tools.program("warpcached-rtl"), "--tcp", "0"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.fullmatch(r"ready at port (\d+)\n", process.stdout.readline()).group(1))
        address = ("127.0.0.1", port)
        yield SimpleNamespace(
            host=address[0], port=port, connect=lambda timeout_s=LIMIT_S: socket.create_connection(address, timeout_s)
        )
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, out


@pytest.fixture
def server(tcp_core):
    """Without items of another test."""
    with tcp_core.connect() as sock, sock.makefile("rb") as replies:
        sock.sendall(b"flush_all\r\n")
        assert replies.readline() == b"OK\r\n"
    return tcp_core
