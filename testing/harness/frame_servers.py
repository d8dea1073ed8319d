# SPDX-License-Identifier: Apache-2.0
"""Servers that get Ethernet frames as a test has made them, by each kind of port."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import select
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness.exchange import ask_stats
from harness.fixtures import require_dpdk
from harness.huge_pages import huge_pages, none_reserved
from harness.network import enter_new_network
from harness.patience import PATIENCE_S
from harness.peer import PeerLink
from harness.programs import find_program
from harness.servers import ServerError, start_server

ETHERNET = 1
# As in linux/if_ether.h, linux/if_packet.h and asm-generic/socket.h.
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID, SO_RCVBUFFORCE = 3, 263, 8, 0x10, 33
RING_MEGABYTES = 66  # of a server with one queue
XDP_MTU = 3000  # the kernel's own buffers for AF_XDP take less
FILE_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, ETHERNET)
FRAME_HEAD = struct.Struct("<IIII")
# What became of a frame: each received one is counted in one of these.
VERDICTS = tuple(
    "frames_" + name
    for name in ("requests", "not_for_us", "truncated", "bad_checksum", "fragments", "unsupported", "malformed")
)


def run_ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        pytest.skip(f"ip {' '.join(words)}: {done.stderr.strip()}")


def require_frames_relay() -> Path:
    require_dpdk()
    # The simulated GPU's program starts the one that this variable names.
    if "SIMT_WARPCACHED" in os.environ:
        beside = Path(os.environ["SIMT_WARPCACHED"]).with_name("frames_relay")
        found = beside if os.access(beside, os.X_OK) else None
    else:
        found = find_program("frames_relay", "FRAMES_RELAY")
    if found is None:
        pytest.skip("frames_relay is not built")
    return found


class FrameServer:
    """A server with a port of frames and a connection for everything else."""

    frame_bytes_min = 0  # shorter and longer ones cannot be sent to it
    frame_bytes_max = 1 << 20
    pads = False  # what comes after a frame looks like a part of it
    takes_jumbo = False  # frames above 2,048 bytes
    interface = ""  # of the other side, where it is one

    def __init__(self, target, frames: str, options: tuple[str, ...]):
        allow = ("--udp-allow=0.0.0.0/0", "--udp-allow=::/0")  # replies of any size
        self.server = start_server(target, (frames, *allow, *options), unix=True)
        self.sock = self.server.connect()

    def stats(self) -> dict[str, int]:
        return {k: int(v) for k, v in ask_stats(self.sock).items() if k.startswith("frames_")}

    def settled(self, received: int, sent: int) -> dict[str, int]:
        """The counters when that many frames were received and sent and all of them are counted."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            stats = self.stats()
            judged = sum(stats[name] for name in VERDICTS)
            if stats["frames_received"] == judged == received and stats["frames_sent"] >= sent:
                break
            time.sleep(0.001)
        return stats

    def wait_for(self, count, number: int) -> int:
        """What `count` makes of the counters, when it has reached the number or does not within the time."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := count(self.stats())) < number and time.monotonic() < deadline:
            time.sleep(0.01)
        return found

    def on_gpu(self) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while "  frames    " not in self.server.log() and time.monotonic() < deadline:
            time.sleep(0.01)  # it says what it is when it serves, which is after it listens
        return "  engine    cuda" in self.server.log()

    def takes(self, step: dict) -> bool:
        """Whether a step of tests/packets can be played to it."""
        if self.pads and step["verdict"] == "truncated":
            return False
        return self.frame_bytes_min <= len(step["in"]) // 2 <= self.frame_bytes_max

    def advanced(self) -> None:
        """The server's clock was changed."""

    def stop(self) -> int:
        self.sock.close()
        return self.server.stop()


class Pipes:
    """Two captures in named pipes: frames go into one, and come out of the other."""

    def __init__(self, folder: Path):
        self.to_server, self.from_server = folder / "in", folder / "out"
        for path in (self.to_server, self.from_server):
            os.mkfifo(path)

    def open(self) -> None:
        self.out = os.open(self.from_server, os.O_RDWR | os.O_NONBLOCK)
        self.into = os.open(self.to_server, os.O_RDWR)
        os.write(self.into, FILE_HEAD)
        assert self.read(len(FILE_HEAD), "nothing") == FILE_HEAD

    def write(self, frames: list[bytes], time_s: int) -> None:
        data = b"".join(FRAME_HEAD.pack(time_s, i, len(f), len(f)) + f for i, f in enumerate(frames))
        while data:
            data = data[os.write(self.into, data[:65536]) :]

    def read(self, size: int, what: str) -> bytes:
        data = b""
        deadline = time.monotonic() + PATIENCE_S
        while len(data) < size:
            ready, _, _ = select.select([self.out], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{len(data)} of {size} bytes came; {what}"
            data += os.read(self.out, size - len(data))
        return data

    def frame(self, what: str) -> bytes:
        _, _, size, _ = FRAME_HEAD.unpack(self.read(FRAME_HEAD.size, what))
        return self.read(size, what)

    def close(self) -> None:
        for fd in (self.into, self.out):
            os.close(fd)


class PcapServer(FrameServer):
    """Two named pipes, which the server opens itself."""

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        self.pipes = Pipes(folder)
        super().__init__(target, f"--frames=pcap:{self.pipes.to_server},{self.pipes.from_server}", options)
        self.pipes.open()

    def send(self, frames: list[bytes], time_s: int = 7) -> None:
        self.pipes.write(frames, time_s)

    def replies(self, count: int) -> list[bytes]:
        return [self.pipes.frame(f"the server's log:\n{self.server.log()}") for _ in range(count)]

    def stop(self) -> int:
        self.pipes.close()
        return super().stop()


class RelayedServer(FrameServer):
    """Memory shared with another process, which sends what a capture holds: tests/frames/frames_relay.cc."""

    frame_bytes_min = 1

    def start(self, target, folder: Path, frames: str, other_side: str, options: tuple[str, ...]) -> None:
        relay = require_frames_relay()
        super().__init__(target, f"--frames={frames}", options)
        self.pipes = Pipes(folder)
        command = [str(relay), other_side, str(self.pipes.to_server), str(self.pipes.from_server)]
        self.relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline() != "ready\n":
            self.end_relay()
            FrameServer.stop(self)
            raise ServerError("the other side of the frames did not start")
        self.pipes.open()

    def send(self, frames: list[bytes]) -> None:
        self.pipes.write(frames, 7)

    def replies(self, count: int) -> list[bytes]:
        return [self.pipes.frame(f"the server's log:\n{self.server.log()}") for _ in range(count)]

    def end_relay(self) -> None:
        self.relay.kill()
        self.relay.wait()
        self.relay.stdout.close()

    def stop(self) -> int:
        self.end_relay()
        self.pipes.close()
        return super().stop()


class MemifServer(RelayedServer):
    """DPDK's memif."""

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        memif = f"socket={folder}/memif,socket-abstract=no"
        with none_reserved():
            self.start(target, folder, f"dpdk:net_memif0,role=client,{memif}", f"net_memif0,role=server,{memif}", options)


class RingServer(RelayedServer):
    """DPDK's rings."""

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        require_dpdk()
        self.pages = contextlib.ExitStack()
        self.pages.enter_context(huge_pages(RING_MEGABYTES))
        name = f"ring:test{os.getpid()}"
        try:
            self.start(target, folder, name, name, options)
        except BaseException:
            self.pages.close()
            raise

    def stop(self) -> int:
        status = super().stop()
        self.pages.close()
        return status


class LinkServer(FrameServer):
    """A network interface whose other side is a packet socket, in a network namespace of its own."""

    frame_bytes_min = 14
    interface = "frames0"  # of the socket

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            executor.submit(self._start, target, options).result()

    def _start(self, target, options: tuple[str, ...]) -> None:
        enter_new_network()
        with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as file:
            file.write("1")  # nothing of the kernel's own
        self.make_link()
        with none_reserved():
            super().__init__(target, self.frames, options)
        self.link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.link.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.link.settimeout(PATIENCE_S)
        self.link.bind((self.interface, 0))
        self.take_mtu()

    def make_link(self) -> None:
        """Before the server starts."""

    def take_mtu(self) -> None:
        """When its interface is there."""

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


class DpdkServer(LinkServer):
    """DPDK's TAP device."""

    frames = "--frames=dpdk:net_tap0,iface=frames0"

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        require_dpdk()
        super().__init__(target, folder, options)


class TapServer(LinkServer):
    """The server's own port of a TAP interface."""

    frames = "--frames=tap:frames0"
    takes_jumbo = True

    def take_mtu(self) -> None:
        run_ip("link", "set", self.interface, "mtu", "9000")


class XdpServer(LinkServer):
    """AF_XDP on a veth interface, whose peer has the packet socket."""

    frames = "--frames=dpdk:net_af_xdp0,iface=near0"
    interface = "far0"

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        require_dpdk()
        if not any(Path("/usr/lib").glob("*/dpdk/pmds-*/librte_net_af_xdp.so")):
            pytest.skip("DPDK has no driver of AF_XDP")
        super().__init__(target, folder, options)

    def make_link(self) -> None:
        run_ip("link", "add", "near0", "type", "veth", "peer", "name", "far0")
        for name in ("near0", "far0"):
            run_ip("link", "set", name, "arp", "off")
            run_ip("link", "set", name, "mtu", str(XDP_MTU))
            run_ip("link", "set", name, "up")


class PeerServer(FrameServer):
    """This process writes the frames to memory that it shares with the server, and rings the GPU."""

    pads = True

    def __init__(self, target, folder: Path, options: tuple[str, ...]):
        self.folder = tempfile.TemporaryDirectory(prefix="warpcache-test-", dir="/dev/shm")
        path = Path(self.folder.name) / "frames"
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
        status = super().stop()
        self.folder.cleanup()
        return status


PORTS = {"pcap": PcapServer, "dpdk": DpdkServer, "memif": MemifServer, "tap": TapServer, "af_xdp": XdpServer}
PORTS["ring"] = RingServer
