# SPDX-License-Identifier: Apache-2.0
"""The client's end of a dialogue: a byte stream, over a stream socket or over UDP frames."""

from __future__ import annotations

import select
import socket
import struct
import time

from .patience import PATIENCE_S

UDP_HEADER = struct.Struct(">HHHH")
UDP_MAX_DATAGRAM = 1400


class ChannelTimeout(Exception):
    """The expected bytes did not come in time."""


class ChannelClosed(Exception):
    """The peer closed the connection."""


class ChannelFault(Exception):
    """The peer broke the transport's own rules (UDP framing)."""


class StreamChannel:
    """TCP or Unix socket. `chunk` > 0 sends in pieces of that many bytes."""

    def __init__(self, sock: socket.socket, chunk: int = 0):
        self.sock = sock
        self.chunk = chunk
        self.buffer = bytearray()
        self.ended = False
        sock.settimeout(PATIENCE_S)

    def send(self, data: bytes) -> None:
        """Sends everything; keeps reading meanwhile, so that neither side can block the other."""
        view = memoryview(data)
        if self.chunk and len(data) > 4096:  # Split only the ends of something long.
            ends = [slice(i, i + 1) for i in range(64)]
            tail = len(data) - 64
            pieces = [view[s] for s in ends] + [view[64:tail]]
            pieces += [view[i : i + 1] for i in range(tail, len(data))]
        elif self.chunk:
            pieces = [view[i : i + self.chunk] for i in range(0, len(data), self.chunk)]
        else:
            pieces = [view]
        for piece in pieces:
            self._send_piece(piece)

    def _send_piece(self, piece: memoryview) -> None:
        deadline = time.monotonic() + PATIENCE_S
        self.sock.setblocking(False)
        try:
            while piece:
                readable, writable, _ = select.select([self.sock], [self.sock], [], 1.0)
                if readable and not self.ended:
                    self._read_available()
                if writable:
                    try:
                        piece = piece[self.sock.send(piece) :]
                        deadline = time.monotonic() + PATIENCE_S
                    except BlockingIOError:
                        pass
                if time.monotonic() > deadline:
                    raise ChannelTimeout(f"{len(piece)} bytes could not be sent")
        except (BrokenPipeError, ConnectionResetError):
            self.ended = True  # Earlier output of the server is still in the buffer.
        finally:
            self.sock.settimeout(PATIENCE_S)

    def _read_available(self) -> None:
        try:
            data = self.sock.recv(1 << 20)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if data:
            self.buffer += data
        else:
            self.ended = True

    def pump(self, deadline: float) -> None:
        """Waits for more bytes (or the end) until `deadline`."""
        if self.ended:
            raise ChannelClosed("the server closed the connection")
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.sock], [], [], left)[0]:
            raise ChannelTimeout("no (more) reply")
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
            raise ChannelClosed("the server closed the connection")
        self.buffer += data

    def half_close(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.sock.close()


class UdpChannel:
    """One request datagram per send; replies are reassembled from their frame headers.

    `strict` holds the server to the protocol: one numbered reply to a request, no empty
    datagrams. memcached itself breaks it: of a get of several keys it sends each value as a
    reply of its own, and an empty datagram (0 of 0) for some misses.
    """

    def __init__(self, sock: socket.socket, strict: bool = True):
        self.sock = sock
        self.strict = strict
        self.answered = False
        self.buffer = bytearray()
        self.ended = False
        self.request_id = 0x1200
        self.partial: dict[int, dict[int, bytes]] = {}
        self.totals: dict[int, int] = {}

    def send(self, data: bytes) -> None:
        self.request_id = (self.request_id + 1) & 0xFFFF
        self.answered = False
        self.sock.send(UDP_HEADER.pack(self.request_id, 0, 1, 0) + data)

    def receive_datagram(self, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([self.sock], [], [], left)[0]:
            raise ChannelTimeout("no (more) reply datagram")
        return self.sock.recv(65536)

    def pump(self, deadline: float) -> None:
        datagram = self.receive_datagram(deadline)
        if not self.strict and datagram[2:] == bytes(6):
            return
        if not UDP_HEADER.size < len(datagram) <= UDP_MAX_DATAGRAM:
            raise ChannelFault(f"reply datagram of {len(datagram)} bytes")
        request_id, sequence, total, reserved = UDP_HEADER.unpack_from(datagram)
        if request_id != self.request_id:
            raise ChannelFault(f"reply to request {request_id:#x}, not {self.request_id:#x}")
        if self.strict and self.answered:
            raise ChannelFault("a second reply to one request")
        if reserved != 0 or sequence >= total:
            raise ChannelFault(f"bad reply frame header {datagram[:8].hex()}")
        if self.totals.setdefault(request_id, total) != total:
            raise ChannelFault("the total of datagrams changed inside one reply")
        parts = self.partial.setdefault(request_id, {})
        if sequence in parts:
            raise ChannelFault(f"datagram {sequence} came twice")
        parts[sequence] = datagram[UDP_HEADER.size :]
        if len(parts) == total:
            for index in range(total):
                self.buffer += parts[index]
            del self.partial[request_id], self.totals[request_id]
            self.answered = True

    def half_close(self) -> None:
        raise ChannelFault("half-close has no meaning over UDP")

    def close(self) -> None:
        self.sock.close()
