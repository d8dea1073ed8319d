# SPDX-License-Identifier: Apache-2.0
"""Frames that were changed at random, through DPDK's port: what it answers, the port of files answers too."""

from __future__ import annotations

import os
import random
import struct
import threading
import time
from pathlib import Path

import pytest
from harness.exchange import ask, ask_stats
from harness.fixtures import require_dpdk, require_target
from harness.patience import PATIENCE_S
from harness.servers import start_server

from .changed_frames import changed, known_frames

FRAMES = 200_000 if "WARPCACHE_LONG_TESTS" in os.environ else 10_000
TIME_S_MAX = PATIENCE_S
pytestmark = pytest.mark.usefixtures("no_huge_pages")
FILE_HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
FRAME_HEAD = struct.Struct("<IIII")
VERDICTS = ("requests", "not_for_us", "truncated", "bad_checksum", "fragments", "unsupported", "malformed")


class Capture:
    """A capture in a named pipe: its head first, which a server reads when it starts."""

    def __init__(self, path: Path):
        self.path = path
        os.mkfifo(path)
        self.opened = threading.Thread(target=self._open)
        self.opened.start()

    def _open(self) -> None:
        self.file = open(self.path, "wb")
        self.file.write(FILE_HEAD)
        self.file.flush()

    def write(self, frames: list[bytes]) -> None:
        self.opened.join()
        with self.file as file:
            for frame in frames:
                file.write(FRAME_HEAD.pack(7, 0, len(frame), len(frame)) + frame)


def read_capture(path: Path) -> list[bytes]:
    """Its frames, but for replies whose numbers differ from server to server."""
    data, at, frames = path.read_bytes(), len(FILE_HEAD), []
    while at < len(data):
        size = FRAME_HEAD.unpack_from(data, at)[2]
        at += FRAME_HEAD.size
        frames.append(data[at : at + size])
        at += size
    return [frame for frame in frames if b"STAT " not in frame]


def play(port: str, frames: list[bytes], folder: Path) -> tuple[list[bytes], dict[str, int]]:
    """The replies to the frames, and the counters. `port` names the pipe {0} and the file of replies {1}."""
    folder.mkdir()
    capture = Capture(folder / "in")
    options = ("--frames=" + port.format(folder / "in", folder / "out"), "--udp-allow=0.0.0.0/0", "--udp-allow=::/0")
    server = start_server(require_target("warpcached"), (*options, "-m", "64"), unix=True)
    with server.connect() as sock:
        assert ask(sock, b"debugtime p\r\n") == b"OK\r\n"  # items expire in neither server
        capture.write(frames)
        deadline = time.monotonic() + TIME_S_MAX
        while True:
            stats = ask_stats(sock)
            judged = sum(int(stats["frames_" + name]) for name in VERDICTS)
            if judged == len(frames) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
    assert server.stop() == 0
    assert judged == len(frames), stats
    return read_capture(folder / "out"), {name: int(stats["frames_" + name]) for name in VERDICTS}


@pytest.mark.not_on_gpu  # a GPU orders nothing within a burst
@pytest.mark.parametrize("seed", [1, 2])
def test_ports_agree_on_changed_frames(tmp_path, seed):
    require_dpdk()
    chance = random.Random(seed)
    known = known_frames()
    frames = [changed(chance.choice(known), chance) for _ in range(FRAMES)]
    by_file, file_counters = play("pcap:{0},{1}", frames, tmp_path / "file")
    by_device, device_counters = play("dpdk:net_pcap0,rx_pcap={0},tx_pcap={1}", frames, tmp_path / "device")
    assert device_counters == file_counters
    assert len(by_file) > len(frames) / 10
    assert by_device == by_file
