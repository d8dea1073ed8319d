# SPDX-License-Identifier: Apache-2.0
"""Requests over UDP and ICMP, and the counters of frames."""

from __future__ import annotations

import socket
import struct
import time

from harness.exchange import ask_stats
from harness.patience import PATIENCE_S



def say(sock: socket.socket, text: bytes, request_id: int = 1) -> bytes:
    """The whole reply to a datagram."""
    sock.send(struct.pack(">HHHH", request_id, 0, 1, 0) + text)
    parts: dict[int, bytes] = {}
    count = 1
    while len(parts) < count:
        data = sock.recv(65536)
        answered, number, count, _ = struct.unpack(">HHHH", data[:8])
        assert answered == request_id
        parts[number] = data[8:]
    return b"".join(parts[number] for number in range(count))


def udp_to(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(PATIENCE_S)
    sock.connect((host, port))
    return sock


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ping(host: str, size: int) -> None:
    """Sends an ICMP echo with `size` bytes and checks the reply."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(PATIENCE_S)
        head, data = struct.pack(">BBHHH", 8, 0, 0, 77, 1), bytes(size)
        raw.sendto(head[:2] + struct.pack(">H", checksum(head + data)) + head[4:] + data, (host, 0))
        while True:
            packet, source = raw.recvfrom(65536)
            if source[0] == host and packet[20] == 0:  # not what the kernel itself was asked
                break
        assert packet[24:] == head[4:] + data


def frames_stats(sock: socket.socket, name: str, value: int) -> dict[str, int]:
    """The counters of frames, when `name` has reached `value`: a reply may come before it is counted."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        stats = {k: int(v) for k, v in ask_stats(sock).items() if k.startswith("frames_")}
        if stats[name] >= value or time.monotonic() > deadline:
            return stats
        time.sleep(0.01)
