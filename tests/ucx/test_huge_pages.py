# SPDX-License-Identifier: Apache-2.0
"""UCX takes no huge pages: whoever has reserved them, for DPDK for instance, has counted them."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.exchange import ask
from harness.huge_pages import huge_pages
from harness.ucx import UcxServer, require_ucx

SIZES = (100, 5000, 20_000, 100_000, 600_000)


def mapped_from_huge_pages(process: int) -> bool:
    return "KernelPageSize:     2048 kB" in Path(f"/proc/{process}/smaps").read_text()


@pytest.mark.parametrize("transports", ["shm", "tcp"])
def test_neither_server_nor_client_takes_any(transports):
    require_ucx()
    with huge_pages(16), UcxServer(transports=transports) as server:
        with server.server.connect() as sock:
            for size in SIZES:
                ask(sock, b"set k 0 0 %d\r\n%s\r\n" % (size, b"v" * size))
                ask(sock, b"get k\r\n", b"END\r\n")
        assert not mapped_from_huge_pages(server.sockets.process.pid)
        assert not mapped_from_huge_pages(server.bridge.process.pid)
