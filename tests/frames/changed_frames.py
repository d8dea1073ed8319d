# SPDX-License-Identifier: Apache-2.0
"""Frames that were changed at random."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[2]
CASES = sorted((REPO_ROOT / "tests" / "packets" / "cases").glob("*.json"))
# What the fuzzer of frames begins with, and what fuzz/run has learnt on this machine.
CORPORA = (REPO_ROOT / "fuzz" / "corpus" / "packet", REPO_ROOT / "build" / "fuzz" / "corpus" / "packet")
FUZZ_TAIL = 2
FRAME_BYTES_MAX = 1514


def known_frames() -> list[bytes]:
    """Those of tests/packets, and what the packet fuzzer keeps."""
    steps = (step for path in CASES for case in json.loads(path.read_text())["cases"] for step in case["steps"])
    found = [bytes.fromhex(step["in"]) for step in steps if "in" in step]
    # The last bytes of an input are no part of its frame: fuzz/packet_fuzz.cc.
    inputs = [path.read_bytes()[:-FUZZ_TAIL] for folder in CORPORA if folder.is_dir() for path in sorted(folder.iterdir())]
    return found + [data for data in inputs if 0 < len(data) <= FRAME_BYTES_MAX]


def put_checksums_right(frame: bytearray) -> None:
    """So that a change after the headers is seen by the parsers. Only for IPv4 without options; no UDP checksum is sent."""
    if len(frame) < 42 or frame[12:15] != b"\x08\x00\x45" or frame[23] != 17:
        return
    frame[40:42] = b"\0\0"
    frame[24:26] = b"\0\0"
    total = sum(struct.unpack(">10H", frame[14:34]))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = struct.pack(">H", total ^ 0xFFFF)


def changed(frame: bytes, chance: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.choice((0, 1, 1, 2, 8))):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0 if place < len(data):
                data[place] ^= 1 << chance.randrange(8)
            case 1 if place < len(data):
                data[place] = chance.choice(b"\0\1\7 \r\n09az\x7f\x80\xff")
            case 2:
                del data[place:]
            case 3:
                data[place:place] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 16)))
            case 4:
                data += data[place:]
        if not data:
            return frame
    if chance.random() < 0.7:
        put_checksums_right(data)
    return bytes(data[:FRAME_BYTES_MAX])
