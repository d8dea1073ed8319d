# SPDX-License-Identifier: Apache-2.0
"""The UDP port of frames where no socket is bound to one."""

from __future__ import annotations

import os
import struct
import subprocess

import pytest
from harness.fixtures import require_target

EMPTY_PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


@pytest.mark.parametrize(
    ("options", "port"), [((), 11211), (("-p", "4321"), 4321), (("-p", "4321", "-U", "4322"), 4322)]
)
def test_port_of_frames_beside_a_unix_socket(tmp_path, options, port):
    requests = tmp_path / "in.pcap"
    requests.write_bytes(EMPTY_PCAP)
    command = [require_target("warpcached").path, "-u", "root", "-t", "1", "-s", str(tmp_path / "sock"), *options]
    command.append(f"--frames=pcap:{requests},{tmp_path / 'out.pcap'}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ) as server:
        try:
            banner = next((line for line in server.stdout if "UDP port" in line), "")
        finally:
            server.terminate()
    assert banner.strip().endswith(f"UDP port {port}")
