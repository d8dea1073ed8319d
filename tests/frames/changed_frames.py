# SPDX-License-Identifier: Apache-2.0
"""Frames that were changed at random."""

from __future__ import annotations

import json
import os
import random
import re
import struct
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[2]
CASES = sorted((REPO_ROOT / "tests" / "packets" / "cases").glob("*.json"))
# What the fuzzer of frames begins with; in the long form also what fuzz/run has learnt on this machine.
LEARNT = REPO_ROOT / "build" / "fuzz" / "corpus" / "packet"
CORPORA = (REPO_ROOT / "fuzz" / "corpus" / "packet", *([LEARNT] if "WARPCACHE_LONG_TESTS" in os.environ else []))
FUZZ_TAIL = 2
FRAME_BYTES_MAX = 1514
VLAN_TAGS = (b"\x81\x00", b"\x88\xa8")
UNIQUE_OF_VALUE = re.compile(rb"^(VALUE \S+ \d+ \d+ )\d+(?=\r\n)", re.MULTILINE)
UNIQUE_OF_META = re.compile(rb"^((?:VA|HD|EN|NS|EX|NF)\b[^\r]*? c)\d+", re.MULTILINE)


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


def without_unique(reply: bytes) -> bytes:
    """A reply without the unique number of its item and without its UDP checksum.

    How an engine numbers items depends on the batches that it made of its requests, so two servers need not agree.
    """
    at = 12
    while reply[at : at + 2] in VLAN_TAGS:
        at += 4
    udp = at + 2 + (40 if reply[at + 2] >> 4 == 6 else 4 * (reply[at + 2] & 15))
    payload = udp + 8 + 8  # memcached's own header comes after UDP's
    data = reply[payload:]
    if data[:1] == b"\x81":
        data = data[:16] + bytes(8) + data[24:]
    else:
        data = UNIQUE_OF_META.sub(rb"\1", UNIQUE_OF_VALUE.sub(rb"\1", data))
    return reply[: udp + 6] + b"\0\0" + reply[udp + 8 : payload] + data
