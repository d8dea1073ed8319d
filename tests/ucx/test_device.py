# SPDX-License-Identifier: Apache-2.0
"""Large values on the CUDA engine: straight into the GPU's memory where UCX reaches it, else by pinned memory. On the simulated
GPU, whose memory UCX takes for the host's; tests/gpu/ucx does the same on a GPU."""

from __future__ import annotations

import os
import sys

import pytest
from harness.exchange import ask
from harness.servers import REPO_ROOT
from harness.ucx import UcxServer, environment

from .test_client import library, value_of
from .test_isolation import held, hostile, wait_for

sys.path.insert(0, str(REPO_ROOT / "src" / "client"))
import warpcache_client as wc  # noqa: E402

pytestmark = pytest.mark.skipif("SIMT_WARPCACHED" not in os.environ, reason="needs the CUDA engine on the simulated GPU")

# Each in one segment, which has 1 MB here, and sent by rendezvous. Values in several pieces are not written straight.
ONE_PIECE = (65_537, 100_000, 262_144, 524_288, 1_000_000)


@pytest.fixture(params=("simulated", "yes", "no"))
def server(request):
    with UcxServer("-m", "1024", "-I", "4m", env={"WARPCACHE_UCX_GPU": request.param}) as started:
        started.reaches = request.param == "simulated"  # "yes" is for a GPU: this UCX knows none
        yield started


@pytest.fixture
def client(server, monkeypatch):
    for name, value in environment(server.transports).items():
        monkeypatch.setenv(name, value)
    with wc.Client(library()) as made:
        made.set_timeout_ms(60_000)
        made.add_server("127.0.0.1", server.sockets.port, server.ucx_port)
        yield made


@pytest.mark.parametrize("size", (*ONE_PIECE, 20_000, 2_000_000))
def test_values_of_all_sizes(server, client, size):
    value = value_of(size, size)[:size]
    before = int(server.stats()["ucx_device_bytes"])
    for key in ("a", "b", "a"):
        assert client.set(key, value, flags=size % 77)
        assert client.gets(key)[:2] == (value, size % 77)
    with server.sockets.connect() as sock:
        assert ask(sock, b"get b\r\n", b"END\r\n") == b"VALUE b %d %d\r\n%s\r\nEND\r\n" % (size % 77, size, value)
    straight = int(server.stats()["ucx_device_bytes"]) - before
    if size in ONE_PIECE and server.reaches:
        assert straight == 3 * size
    elif not server.reaches:
        assert straight == 0


def test_a_killed_client_frees_what_it_held(server):
    before = held(server)
    for scenario in ("half-set", "set-announced"):
        with hostile(server, scenario):
            pass
    wait_for(lambda: held(server) == before, f"all is free, as before: {before}")
    assert server.sockets.alive()
