# SPDX-License-Identifier: Apache-2.0
"""Shared by the fault tests: bystanders, descriptors, memory, binary packets, abrupt ends."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from harness import measure
from harness.binary import HEADER, HEADER_SIZE, MAGIC_REQUEST, MAGIC_RESPONSE, OPCODES
from harness.exchange import ask, ask_stats, receive_exactly
from harness.patience import PATIENCE_S
from harness.servers import Server, is_sanitized

KIB = 1 << 10
MIB = 1 << 20
# The longest wait of other clients for an answer, in wall time, however the offender behaves, beyond
# what the machine makes a process that does nothing else wait. The server itself needs a thousandth
# of it; bench/isolation measures that on a quiet machine.
OTHERS_WAIT_S_MAX = 2.0
SANITIZED_FACTOR = 4
# Unsent replies that were copied: of one worker (SocketTransportConfig::output_bytes_max).
UNSENT_MIB_MAX = 64


def eventually(check, time_s_max: float = PATIENCE_S) -> bool:
    """Whether `check` becomes true in time."""
    deadline = time.monotonic() + time_s_max
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def ask_once(server: Server, request: bytes, end: bytes = b"\r\n") -> bytes:
    with server.connect() as sock:
        return ask(sock, request, end)


def store(sock: socket.socket, key: bytes, value: bytes, exptime: int = 0) -> None:
    reply = ask(sock, b"set %s 0 %d %d\r\n%s\r\n" % (key, exptime, len(value), value))
    assert reply == b"STORED\r\n", (key, len(value), reply)


def value_reply(key: bytes, value: bytes) -> bytes:
    return b"VALUE %s 0 %d\r\n%s\r\n" % (key, len(value), value)


def fetch(sock: socket.socket, key: bytes) -> bytes | None:
    """The value, or None. Uses only the length in the line."""
    sock.sendall(b"get %s\r\n" % key)
    head = bytearray()
    while not head.endswith(b"\r\n"):
        head += receive_exactly(sock, 1)
    if head == b"END\r\n":
        return None
    word, name, _, size = bytes(head).split()
    assert (word, name) == (b"VALUE", key), head
    value = receive_exactly(sock, int(size))
    assert receive_exactly(sock, 7) == b"\r\nEND\r\n"
    return value


def pattern(number: int, size: int) -> bytes:
    """Bytes that show their value and their position in it."""
    unit = b"%08x" % (number * 2654435761 % (1 << 32))
    numbered = b"".join(unit + b"%08x" % i for i in range(min(size // 16 + 1, 64)))
    return (numbered * (size // len(numbered) + 1))[:size]


def stats(server: Server, kind: str = "") -> dict[str, str]:
    with server.connect() as sock:
        return ask_stats(sock, kind)


def connections(server: Server) -> int:
    """Connections without the one that asks."""
    return int(stats(server)["curr_connections"]) - 1


def descriptor_count(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def resident_mib(server: Server) -> float:
    return measure.resident_kib(server)["rss_kib"] / KIB


def peak_mib(server: Server) -> float:
    return measure.resident_kib(server)["peak_kib"] / KIB


def allowed_mib(megabytes: int, *, idle: int = 0, busy: int = 0, unsent_mib: float = 0) -> float:
    """-m and the documented overhead; `unsent_mib` is for unread replies."""
    engine_mib = float(os.environ.get("WARPCACHED_ENGINE_MIB", "0"))  # of an engine with buffers of its own
    return measure.allowed_kib(megabytes, idle, busy) / KIB + unsent_mib + engine_mib


def cpu_seconds(server: Server) -> float:
    """CPU time that the server's threads have used, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{server.pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def reset(sock: socket.socket) -> None:
    """Closes with a TCP reset: what a client's sudden end looks like."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def packet(
    opcode: str | int,
    key: bytes = b"",
    value: bytes = b"",
    extras: bytes = b"",
    *,
    opaque: int = 0,
    magic: int = MAGIC_REQUEST,
    keylen: int | None = None,
    extlen: int | None = None,
    bodylen: int | None = None,
    cas: int = 0,
) -> bytes:
    """A binary request, whose lengths may be wrong."""
    body = extras + key + value
    number = OPCODES[opcode] if isinstance(opcode, str) else opcode
    return (
        HEADER.pack(
            magic,
            number,
            len(key) if keylen is None else keylen,
            len(extras) if extlen is None else extlen,
            0,
            0,
            len(body) if bodylen is None else bodylen,
            opaque,
            cas,
        )
        + body
    )


def split_packets(stream: bytes) -> list[tuple[int, int, int, bytes]]:
    """Binary replies as (opcode, status, opaque, body). Every byte must belong to one."""
    packets = []
    at = 0
    while at < len(stream):
        assert len(stream) - at >= HEADER_SIZE, f"half a header at the end: {stream[at:].hex()}"
        header = HEADER.unpack_from(stream, at)
        magic, opcode, keylen, extlen, _, status, bodylen, opaque, _ = header
        assert magic == MAGIC_RESPONSE, f"no reply at {at}: {stream[at : at + 24].hex()}"
        assert keylen + extlen <= bodylen <= len(stream) - at - HEADER_SIZE, header
        at += HEADER_SIZE
        packets.append((opcode, status, opaque, stream[at : at + bodylen]))
        at += bodylen
    return packets


class Echo:
    """A process that answers at once. Its longest answer is what the machine makes others wait."""

    def __init__(self):
        self._process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.longest_s = 0.0

    def ask(self) -> None:
        started = time.monotonic()
        self._process.stdin.write(b".")
        assert self._process.stdout.read(1) == b"."
        self.longest_s = max(self.longest_s, time.monotonic() - started)

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Bystander:
    """A well-behaved client with its own connections: it gets correct values in time."""

    def __init__(self, server: Server, wait_s_max: float, count: int = 4):
        # New connections go to the worker with the fewest, so several connections reach all workers.
        self.server = server
        self.socks = [server.connect(PATIENCE_S) for _ in range(count)]
        self.wait_s_max = wait_s_max
        self.longest_s = 0.0
        self.echo = Echo()
        self.requests = 0
        self.failure: str | None = None
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            while not self.ending.is_set():
                for index, sock in enumerate(self.socks):
                    self._step(index, sock)
                    self.echo.ask()
                time.sleep(0.005)
        except (OSError, AssertionError) as failure:
            self.failure = repr(failure)

    def _step(self, index: int, sock: socket.socket) -> None:
        key = b"bystander%d" % index
        value = b"%d" % self.requests
        started = time.monotonic()
        self._say(sock, key, value)
        self.longest_s = max(self.longest_s, time.monotonic() - started)
        self.requests += 1

    def _say(self, sock: socket.socket, key: bytes, value: bytes) -> None:
        store(sock, key, value)
        got = fetch(sock, key)
        assert got in (None, value), (key, value, got)

    def check(self) -> None:
        """Raises unless everything was answered, and in time."""
        assert self.failure is None, self.failure
        # A step is four messages, an answer of the echo is two.
        bound_s = self.wait_s_max + 2 * self.echo.longest_s
        assert self.longest_s <= bound_s, f"{self.longest_s:.3f} s for a small request, above {bound_s:.3f}"


@contextmanager
def bystander(server: Server):
    """Runs a Bystander at the same time, with at least 10 of its requests."""
    other = Bystander(server, others_wait_s_max(server))
    other.thread.start()
    try:
        yield other
        target = other.requests + 10
        assert eventually(
            lambda: other.failure or other.requests >= target
        ), "the others get no answers"
    finally:
        other.ending.set()
        other.thread.join(PATIENCE_S)
        other.echo.end()
        for sock in other.socks:
            sock.close()
    other.check()


def others_wait_s_max(server: Server) -> float:
    return OTHERS_WAIT_S_MAX * (SANITIZED_FACTOR if is_sanitized(server.target.path) else 1)


def check_memory(server: Server, allowed: float) -> None:
    """The server has never occupied more than `allowed` MiB."""
    if not is_sanitized(server.target.path):
        assert peak_mib(server) <= allowed
