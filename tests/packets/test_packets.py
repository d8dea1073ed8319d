# SPDX-License-Identifier: Apache-2.0
"""The cases of this folder, played through the server, by each of its ports that keeps frames as they are.

`WARPCACHED` may be any build, with any engine: tests/simulated_gpu/warpcached runs them on the CUDA engine.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import select
import socket
import struct
import time
from pathlib import Path

import pytest
from harness.exchange import ask, ask_stats
from harness.fixtures import require_dpdk, require_gpu, require_target
from harness.network import enter_new_network
from harness.peer import PeerLink
from harness.servers import start_server

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
TIME_S_MAX = 10.0
ETHERNET = 1
# As in linux/if_ether.h and linux/if_packet.h.
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 3, 263, 8, 0x10
FILE_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, ETHERNET)
FRAME_HEAD = struct.Struct("<IIII")
# What the server counts a frame as, by the verdicts of README.md.
COUNTERS = {
    "request": "frames_requests",
    "not_for_us": "frames_not_for_us",
    "truncated": "frames_truncated",
    "bad_checksum": "frames_bad_checksum",
    "fragment": "frames_fragments",
    "unsupported": "frames_unsupported",
    "malformed": "frames_malformed",
}
ENGINES = {"launch": (), "persistent": ("--gpu-mode=persistent",), "edge": ("--gpu-mode=edge",)}


class FrameServer:
    """A server with a port of frames and a connection for everything else."""

    frame_bytes_min = 0  # shorter and longer ones cannot be sent to it
    frame_bytes_max = 1 << 20
    pads = False  # what comes after a frame looks like a part of it

    def __init__(self, target, frames: str, options: tuple[str, ...]):
        allow = ("--udp-allow=0.0.0.0/0", "--udp-allow=::/0")  # replies of any size
        self.server = start_server(target, (frames, *allow, *options), unix=True)
        self.sock = self.server.connect()

    def stats(self) -> dict[str, int]:
        return {k: int(v) for k, v in ask_stats(self.sock).items() if k.startswith("frames_")}

    def settled(self, received: int, sent: int) -> dict[str, int]:
        """The counters when that many frames were received and sent and all of them are counted."""
        deadline = time.monotonic() + TIME_S_MAX
        while time.monotonic() < deadline:
            stats = self.stats()
            judged = sum(stats[name] for name in COUNTERS.values())
            if stats["frames_received"] == judged == received and stats["frames_sent"] >= sent:
                break
            time.sleep(0.001)
        return stats

    def on_gpu(self) -> bool:
        deadline = time.monotonic() + TIME_S_MAX
        while "  frames    " not in self.server.log() and time.monotonic() < deadline:
            time.sleep(0.01)  # it says what it is when it serves, which is after it listens
        return "  engine    cuda" in self.server.log()

    def takes(self, step: dict) -> bool:
        if self.pads and step["verdict"] == "truncated":
            return False
        return self.frame_bytes_min <= len(step["in"]) // 2 <= self.frame_bytes_max

    def advanced(self) -> None:
        """The server's clock was changed."""

    def stop(self) -> int:
        self.sock.close()
        return self.server.stop()


class PcapServer(FrameServer):
    """Two named pipes."""

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        to_server, from_server = folder / "in", folder / "out"
        for path in (to_server, from_server):
            os.mkfifo(path)
        super().__init__(target, f"--frames=pcap:{to_server},{from_server}", options)
        self.out = os.open(from_server, os.O_RDONLY | os.O_NONBLOCK)
        self.into = os.open(to_server, os.O_WRONLY)
        os.write(self.into, FILE_HEAD)
        assert self.read(len(FILE_HEAD)) == FILE_HEAD

    def send(self, frames: list[bytes], time_s: int = 7) -> None:
        data = b"".join(FRAME_HEAD.pack(time_s, i, len(f), len(f)) + f for i, f in enumerate(frames))
        while data:
            data = data[os.write(self.into, data[:65536]) :]

    def read(self, size: int) -> bytes:
        data = b""
        deadline = time.monotonic() + TIME_S_MAX
        while len(data) < size:
            ready, _, _ = select.select([self.out], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{len(data)} of {size} bytes came; the server's log:\n{self.server.log()}"
            data += os.read(self.out, size - len(data))
        return data

    def replies(self, count: int) -> list[bytes]:
        """The next frames that the server sends."""
        frames = []
        for _ in range(count):
            _, _, size, _ = FRAME_HEAD.unpack(self.read(FRAME_HEAD.size))
            frames.append(self.read(size))
        return frames

    def stop(self) -> int:
        for fd in (self.into, self.out):
            os.close(fd)
        return super().stop()


class DpdkServer(FrameServer):
    """DPDK's TAP device, whose other side is a packet socket."""

    frame_bytes_min = 14

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        require_dpdk()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            executor.submit(self._start, target, options).result()

    def _start(self, target, options: tuple[str, ...]) -> None:
        enter_new_network()
        with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as file:
            file.write("1")  # nothing of the kernel's own
        super().__init__(target, "--frames=dpdk:net_tap0,iface=frames0", options)
        self.link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.link.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.link.settimeout(TIME_S_MAX)
        self.link.bind(("frames0", 0))

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.link.send(frame)

    def replies(self, count: int) -> list[bytes]:
        """The next frames that the server sends. The kernel takes a VLAN tag out."""
        frames = []
        while len(frames) < count:
            frame, ancillary, _, address = self.link.recvmsg(65536, 256)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            for level, kind, data in ancillary:
                if (level, kind) != (SOL_PACKET, PACKET_AUXDATA):
                    continue
                status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data)
                if status & TP_STATUS_VLAN_VALID:
                    frame = frame[:12] + struct.pack(">HH", tpid, tci) + frame[12:]
            frames.append(frame)
        return frames

    def stop(self) -> int:
        self.link.close()
        return super().stop()


class PeerServer(FrameServer):
    """This process writes the frames to memory that it shares with the server, and rings the GPU."""

    pads = True

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        path = folder / "frames"
        super().__init__(target, f"--frames=peer:{path},16384", options)
        self.link = PeerLink(path, lambda: self.server.process.poll() is None)

    @property
    def frame_bytes_max(self) -> int:
        return self.link.slot_bytes

    def send(self, frames: list[bytes]) -> None:
        self.link.send(frames)

    def replies(self, count: int) -> list[bytes]:
        return self.link.replies(count)

    def advanced(self) -> None:
        self.link.ring_all()  # bursts that wait learn the time a moment later

    def stop(self) -> int:
        self.link.close()
        return super().stop()


PORTS = {"pcap": PcapServer, "dpdk": DpdkServer, "peer": PeerServer}
ROUTES = [(port, mode) for port in PORTS for mode in ENGINES if port != "peer" or mode == "edge"]


@pytest.fixture(params=ROUTES, ids="-".join)
def frame_server(request, tmp_path):
    port, mode = request.param
    target = require_target("warpcached")
    if port == "peer":
        require_gpu(target)  # which alone can be rung
    made = PORTS[port](target, tmp_path, ENGINES[mode])
    if mode != "launch" and not made.on_gpu():
        made.stop()
        pytest.skip("the CPU engine has one mode")
    yield made
    assert made.stop() == 0


def matches(want: str, got: bytes) -> bool:
    return len(want) == 2 * len(got) and all(w in ("x", g) for w, g in zip(want, got.hex()))


def set_up(server: FrameServer, case: dict) -> None:
    assert ask(server.sock, b"flush_all\r\n") == b"OK\r\n"
    for command in case["setup"]:
        server.sock.sendall(command.encode("latin-1") + b"mn\r\n")
        answer = b""
        while not answer.endswith(b"MN\r\n"):
            answer += server.sock.recv(65536)
        assert b"ERROR" not in answer, command


def check(server: FrameServer, want: list[str], at: str) -> None:
    for number, (frame, got) in enumerate(zip(want, server.replies(len(want)))):
        assert matches(frame, got), f"{at}, reply {number}\nwant {frame}\ngot  {got.hex()}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_one_by_one(frame_server, path):
    received = sent = 0
    for case in json.loads(path.read_text())["cases"]:
        set_up(frame_server, case)
        for number, step in enumerate(case["steps"], 1):
            at = f"{case['name']}, step {number}"
            if "advance_s" in step:
                advance(frame_server, step["advance_s"])
                continue
            before = frame_server.stats()
            if not frame_server.takes(step):
                continue
            frame_server.send([bytes.fromhex(step["in"])])
            check(frame_server, step["out"], at)
            received += 1
            sent += len(step["out"])
            after = frame_server.settled(received, sent)
            assert after["frames_sent"] == sent, at
            name = COUNTERS[step["verdict"]]
            assert after[name] == before[name] + 1, f"{at} is not {step['verdict']}"


def advance(server: FrameServer, seconds: int) -> None:
    answer = ask(server.sock, b"debugtime %d\r\n" % seconds)
    assert answer == b"OK\r\n"
    server.advanced()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_in_one_burst(frame_server, path):
    """The server takes what is there: in bursts of any number. Datagrams have no order on a GPU."""
    if frame_server.on_gpu():
        pytest.skip("a GPU orders nothing within a burst")
    for case in json.loads(path.read_text())["cases"]:
        set_up(frame_server, case)
        frames, want = [], []
        for step in [*case["steps"], {"advance_s": 0}]:
            if "advance_s" not in step:
                if frame_server.takes(step):
                    frames.append(bytes.fromhex(step["in"]))
                    want += step["out"]
                continue
            frame_server.send(frames)
            check(frame_server, want, f"{case['name']}, a burst of {len(frames)}")
            frames, want = [], []
            if step["advance_s"]:
                advance(frame_server, step["advance_s"])
