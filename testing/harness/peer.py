# SPDX-License-Identifier: Apache-2.0
"""The peer of `--frames=peer:FILE`, with what docs/edge.md says of the bytes of its two files, and nothing else."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable
from pathlib import Path

from .patience import PATIENCE_S

MAGIC = b"WAPPEER1"
HEADER = struct.Struct("<8sIIQII")
CONTROLS, CONTROL_BYTES = 4096, 128
CONTROL = struct.Struct("<IIQQQQII")
REPLY = struct.Struct("<IIQ")
STATE, FRAMES = 0, 4  # in the control block
READY, ENDED, GIVEN_BACK = 1, 2, 3


class PeerLink:
    """Writes frames, rings, and takes replies. The only peer of its server."""

    def __init__(self, path: Path, is_alive: Callable[[], bool] = lambda: True):
        self.is_alive = is_alive
        self.memory = self._map(path)
        magic, version, self.bursts, size, self.slots, self.slot_bytes = HEADER.unpack_from(self.memory)
        assert (magic, version, size) == (MAGIC, 1, len(self.memory))
        self.doorbells = self._map(path.with_name(path.name + ".doorbells"))
        self.received: list[bytes] = []
        self.rung: list[int] = []

    @staticmethod
    def _map(path: Path) -> mmap.mmap:
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    def _at(self, burst: int) -> int:
        return CONTROLS + burst * CONTROL_BYTES

    def state(self, burst: int) -> int:
        return struct.unpack_from("<I", self.memory, self._at(burst) + STATE)[0]

    def ready(self) -> list[int]:
        return [burst for burst in range(self.bursts) if self.state(burst) == READY and burst not in self.rung]

    def _wait(self, done: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not done():
            assert self.is_alive() and time.monotonic() < end, "the server does not answer"
            time.sleep(0.0002)

    def fill(self, burst: int, frames: list[bytes]) -> None:
        """Writes the frames of a burst that is ready, without ringing."""
        *_, slots, _, _, capacity = CONTROL.unpack_from(self.memory, self._at(burst))
        assert len(frames) <= capacity
        for number, frame in enumerate(frames):
            assert len(frame) <= self.slot_bytes
            start = slots + number * self.slot_bytes
            self.memory[start : start + self.slot_bytes] = frame.ljust(self.slot_bytes, b"\0")
        struct.pack_into("<I", self.memory, self._at(burst) + FRAMES, len(frames))

    def ring(self, burst: int) -> None:
        _, _, doorbell, value, *_ = CONTROL.unpack_from(self.memory, self._at(burst))
        self.rung.append(burst)
        struct.pack_into("<Q", self.doorbells, doorbell, value)

    def send(self, frames: list[bytes]) -> int:
        self._wait(self.ready)
        burst = self.ready()[0]
        self.fill(burst, frames)
        self.ring(burst)
        return burst

    def take(self, burst: int) -> list[tuple[int, bytes]]:
        """Waits for the end of a burst: its replies, each with the number of its request."""
        self._wait(lambda: self.state(burst) == ENDED)
        *_, replies, count, _ = CONTROL.unpack_from(self.memory, self._at(burst))
        taken = []
        for number in range(count):
            request, size, offset = REPLY.unpack_from(self.memory, replies + number * REPLY.size)
            taken.append((request, bytes(self.memory[offset : offset + size])))
        self.rung.remove(burst)
        struct.pack_into("<I", self.memory, self._at(burst) + STATE, GIVEN_BACK)
        return taken

    def take_left(self) -> None:
        """Takes what a peer that has died left: bursts that it had rung for, and frames that it had not."""
        for burst in range(self.bursts):
            if self.state(burst) == READY:
                _, frames, doorbell, value, slots, *_ = CONTROL.unpack_from(self.memory, self._at(burst))
                if struct.unpack_from("<Q", self.doorbells, doorbell)[0] != value:
                    self.fill(burst, [b""] * frames)
                    self.fill(burst, [])
                    continue
            if self.state(burst) in (READY, ENDED):
                self.rung.append(burst)
                self.take(burst)

    def ring_all(self) -> None:
        """Rings for all bursts that are ready, without a frame, and waits for their end."""
        for burst in self.ready():
            self.fill(burst, [])
            self.ring(burst)
            self.take(burst)

    def replies(self, count: int) -> list[bytes]:
        """The next replies, in the order of the bursts."""
        while len(self.received) < count and self.rung:
            self.received += [reply for _, reply in self.take(self.rung[0])]
        assert len(self.received) >= count, f"{len(self.received)} of {count} replies came"
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def close(self) -> None:
        self.memory.close()
        self.doorbells.close()
