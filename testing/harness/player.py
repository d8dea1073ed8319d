# SPDX-License-Identifier: Apache-2.0
"""Plays a transcript against a running server and checks every byte that comes back."""

from __future__ import annotations

import socket
import struct
import time

from . import binary
from .channels import (
    UDP_HEADER,
    ChannelClosed,
    ChannelFault,
    ChannelTimeout,
    StreamChannel,
    UdpChannel,
)
from .dialogue import SENDS, Step, Transcript
from .exchange import ask
from .patience import PATIENCE_S
from .servers import Server
from .texts import Texts

UDP_SILENCE_S = 0.05
WITHIN_POLL_S = 0.05

class Mismatch(AssertionError):
    """The server did not say what the transcript expects."""


class Player:
    """One run of one transcript. `transport` is one of dialogue.TRANSPORTS."""

    def __init__(self, transcript: Transcript, server: Server, transport: str):
        self.transcript = transcript
        self.server = server
        self.transport = transport
        self.target = server.target.name
        self.channels: dict[str, StreamChannel | UdpChannel] = {}
        self.kinds: dict[str, str] = {}  # what a connection spoke last: text or binary
        self.texts = Texts(server.pid)
        self.block: list[bytes] = []
        self.pending: dict[str, bytearray] = {}
        self.exited = False
        self.clock_stands = False

    def run(self) -> None:
        try:
            if self.transcript.clock_stands:
                self.clock_stands = self._set_clock("p")
            for group in self.transcript.groups:
                steps = [s for s in group if s.target in (None, self.target)]
                if steps and steps[0].verb == "within":
                    self._run_within(float(steps[0].text), steps[0], steps[1:])
                else:
                    self._run_steps(steps)
            self._check_nothing_left()
        finally:
            for channel in self.channels.values():
                channel.close()

    # --- groups -------------------------------------------------------------------------

    def _run_steps(self, steps: list[Step]) -> None:
        for step in steps:
            if step.verb not in SENDS:
                self._flush_sends()
            try:
                self._run_step(step)
            except (Mismatch, ChannelTimeout, ChannelClosed, ChannelFault, ValueError) as error:
                raise Mismatch(self._explain(step, error)) from None
        self._flush_sends()

    def _run_within(self, seconds: float, head: Step, steps: list[Step]) -> None:
        """Repeats the group until it passes; the last failure counts when time is up."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._run_steps(steps)
                return
            except Mismatch as error:
                if time.monotonic() > deadline:
                    raise Mismatch(f"not within {head.text} s: {error}") from None
            for name in {step.conn for step in steps}:
                self._resynchronise(name)
            time.sleep(WITHIN_POLL_S)

    def _resynchronise(self, name: str) -> None:
        """Throws away what a failed attempt left unread."""
        channel = self._channel(name)
        if isinstance(channel, UdpChannel):
            self._pump_for(channel, UDP_SILENCE_S)
            channel.partial.clear()
            channel.totals.clear()
        else:
            self._barrier(name, channel)
        channel.buffer.clear()

    def _explain(self, step: Step, error: Exception) -> str:
        lines = [
            f"{self.transcript.path}:{step.line}: [{self.target}, {self.transport}] {error}",
            f"  step: {step.source.strip()[:300]}",
        ]
        for name, channel in self.channels.items():
            if channel.buffer:
                unread = binary.quote(bytes(channel.buffer), 300)
                lines.append(f"  unread on connection {name}: {unread}")
        if not self.server.alive():
            lines.append(f"  the server has ended: exit {self.server.process.returncode}")
            lines.append(self.server.log()[-2000:])
        return "\n".join(lines)

    # --- connections --------------------------------------------------------------------

    def _channel(self, name: str) -> StreamChannel | UdpChannel:
        if name not in self.channels:
            if self.transport == "udp" and not name.startswith("tcp"):
                self.channels[name] = UdpChannel(
                    self.server.connect_udp(), strict=self.target != "memcached"
                )
            else:
                chunk = 1 if self.transport == "split" else 0
                self.channels[name] = StreamChannel(self.server.connect(), chunk)
        return self.channels[name]

    def _flush_sends(self) -> None:
        pending, self.pending = self.pending, {}
        for name, data in pending.items():
            self._channel(name).send(bytes(data))

    def _take(self, name: str, count: int) -> bytes:
        channel = self._channel(name)
        deadline = time.monotonic() + PATIENCE_S
        while len(channel.buffer) < count:
            channel.pump(deadline)
        data = bytes(channel.buffer[:count])
        del channel.buffer[:count]
        return data

    def _take_line(self, name: str) -> bytes:
        """The next line, without its CR LF."""
        channel = self._channel(name)
        deadline = time.monotonic() + PATIENCE_S
        searched = 0
        while (at := channel.buffer.find(b"\r\n", searched)) < 0:
            searched = max(0, len(channel.buffer) - 1)
            channel.pump(deadline)
        line = bytes(channel.buffer[:at])
        del channel.buffer[: at + 2]
        return line

    def _take_reply(self, name: str) -> binary.Reply:
        header = self._take(name, binary.HEADER_SIZE)
        return binary.decode_reply(header, self._take(name, binary.body_length(header)))

    def _pump_for(self, channel: StreamChannel | UdpChannel, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        try:
            while True:
                channel.pump(deadline)
        except ChannelTimeout:
            pass

    # --- steps --------------------------------------------------------------------------

    def _run_step(self, step: Step) -> None:
        name = {
            ">": "send",
            ">-": "send_raw",
            ">b": "send_binary",
            ">h": "send_hex",
            ">d": "send_datagram",
            "<": "expect",
            "<-": "expect_raw",
            "<b": "expect_binary",
            "<h": "expect_hex",
            "<d": "expect_datagram",
            "~": "expect_match",
            "...": "read_block",
            "...b": "read_binary_block",
            "?": "block_has",
            "?!": "block_has_not",
        }.get(step.verb, step.verb.replace("-", "_"))
        getattr(self, "_do_" + name)(step)

    def _queue(self, step: Step, data: bytes, kind: str) -> None:
        self.kinds[step.conn] = kind
        self.pending.setdefault(step.conn, bytearray()).extend(data)

    def _do_send(self, step: Step) -> None:
        self._queue(step, self.texts.expand(step.text) + b"\r\n", "text")

    def _do_send_raw(self, step: Step) -> None:
        self._queue(step, self.texts.expand(step.text), "text")

    def _fields(self, step: Step) -> tuple[str, dict[str, str]]:
        name, *pairs = step.text.split()
        fields = {}
        for pair in pairs:
            key, separator, value = pair.partition("=")
            if not separator:
                raise ValueError(f"not a field: {pair!r}")
            fields[key] = value
        return name, fields

    def _do_send_binary(self, step: Step) -> None:
        name, fields = self._fields(step)
        filled = {key: self.texts.expand(text) for key, text in fields.items()}
        packet = binary.encode_request(name, filled)
        self._queue(step, packet, "binary")

    def _do_send_hex(self, step: Step) -> None:
        self._queue(step, bytes.fromhex(step.text), "binary")

    def _expect_bytes(self, step: Step, wanted: bytes) -> None:
        channel = self._channel(step.conn)
        deadline = time.monotonic() + PATIENCE_S
        while len(channel.buffer) < len(wanted):
            if not wanted.startswith(channel.buffer):
                break  # Already wrong: no need to wait for the rest.
            channel.pump(deadline)
        got = bytes(channel.buffer[: len(wanted)])
        if got != wanted:
            at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), len(got))
            raise Mismatch(
                f"at byte {at}: expected {binary.quote(wanted[max(0, at - 60):], 200)},"
                f" received {binary.quote(got[max(0, at - 60):], 200)}"
            )
        del channel.buffer[: len(wanted)]

    def _do_expect(self, step: Step) -> None:
        self._expect_bytes(step, self.texts.expand(step.text) + b"\r\n")

    def _do_expect_raw(self, step: Step) -> None:
        self._expect_bytes(step, self.texts.expand(step.text))

    def _do_expect_hex(self, step: Step) -> None:
        self._expect_bytes(step, bytes.fromhex(step.text))

    def _do_expect_match(self, step: Step) -> None:
        line = self._take_line(step.conn)
        if not self.texts.match(self.texts.regex(step.text), line):
            raise Mismatch(f"received {binary.quote(line, 300)}")

    def _check_field(self, what: str, wanted: str, got: bytes | int) -> None:
        if wanted.startswith("?"):
            if got in (0, b""):
                raise Mismatch(f"{what} is empty, nothing to capture")
            self.texts.variables[wanted[1:]] = got
        elif wanted.startswith("~"):
            data = b"%d" % got if isinstance(got, int) else got
            if not self.texts.match(self.texts.regex(wanted[1:]), data):
                raise Mismatch(f"{what} is {binary.quote(data, 300)}")
        else:
            value = self.texts.expand(wanted)
            expected = binary.parse_int(value.decode()) if isinstance(got, int) else value
            if got != expected:
                shown = binary.quote(got, 300) if isinstance(got, bytes) else got
                raise Mismatch(f"{what} is {shown}, not {wanted[:300]}")

    def _do_expect_binary(self, step: Step) -> None:
        name, fields = self._fields(step)
        reply = self._take_reply(step.conn)
        try:
            self._check_reply(name, fields, reply)
        except Mismatch as error:
            raise Mismatch(f"{error}; received: {reply.describe()[:400]}") from None

    def _check_reply(self, name: str, fields: dict[str, str], reply: binary.Reply) -> None:
        if reply.magic != binary.MAGIC_RESPONSE:
            raise Mismatch(f"magic is {reply.magic:#x}")
        if reply.opcode != binary.opcode_number(name):
            raise Mismatch(f"opcode is {reply.opcode:#x}, not {name}")
        status = fields.pop("status", "ok")
        code = binary.STATUSES.get(status)
        if reply.status != (binary.parse_int(status) if code is None else code):
            raise Mismatch(f"status is {reply.status:#x}, not {status}")
        if reply.datatype != 0:
            raise Mismatch(f"data type is {reply.datatype}")
        self._check_field("opaque", fields.pop("opaque", "0"), reply.opaque)
        if "cas" in fields:
            self._check_field("cas", fields.pop("cas"), reply.cas)
        if "extras" in fields:
            if reply.extras.hex() != fields.pop("extras"):
                raise Mismatch(f"extras are {reply.extras.hex()}")
        elif reply.status == 0 and reply.opcode in binary.FLAGS_REPLIES:
            flags = struct.pack(">I", binary.parse_int(fields.pop("flags", "0")))
            if reply.extras != flags:
                raise Mismatch(f"flags are {reply.extras.hex()}")
        elif reply.extras:
            raise Mismatch(f"unexpected extras {reply.extras.hex()}")
        self._check_field("key", fields.pop("key", ""), reply.key)
        if "number" in fields:
            if len(reply.value) != 8:
                raise Mismatch("no 8-byte number")
            number = struct.unpack(">Q", reply.value)[0]
            self._check_field("number", fields.pop("number"), number)
        elif "value" in fields:
            self._check_field("value", fields.pop("value"), reply.value)
        else:
            text = binary.STATUS_TEXTS.get(reply.status, b"")
            if reply.value != text:
                raise Mismatch(f"value is {binary.quote(reply.value, 300)}, not {text.decode()!r}")
        if fields:
            raise ValueError(f"unknown field(s) {sorted(fields)}")

    def _do_read_block(self, step: Step) -> None:
        last = self.texts.expand(step.text)
        self.block = []
        while (line := self._take_line(step.conn)) != last:
            if line.startswith((b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")):
                raise Mismatch(f"received {binary.quote(line)}")
            self.block.append(line)

    def _do_read_binary_block(self, step: Step) -> None:
        wanted = binary.opcode_number(step.text.strip())
        self.block = []
        while True:
            reply = self._take_reply(step.conn)
            if reply.opcode != wanted or reply.status != 0:
                raise Mismatch(f"received: {reply.describe()[:400]}")
            if not reply.key and not reply.value:
                return
            self.block.append(reply.key + b" " + reply.value)

    def _do_block_has(self, step: Step) -> None:
        regex = self.texts.regex(step.text)
        if not any(self.texts.match(regex, line) for line in self.block):
            shown = "\n    ".join(binary.quote(line, 200) for line in self.block)
            raise Mismatch(f"no line matches, among:\n    {shown}")

    def _do_block_has_not(self, step: Step) -> None:
        regex = self.texts.regex(step.text)
        for line in self.block:
            if regex.fullmatch(line):
                raise Mismatch(f"there is {binary.quote(line, 200)}")

    def _do_sleep(self, step: Step) -> None:
        time.sleep(float(step.text))

    def _set_clock(self, words: str) -> bool:
        """Whether the server has such a command."""
        with self.server.connect() as sock:
            return ask(sock, b"debugtime %s\r\n" % words.encode()) == b"OK\r\n"

    def _do_pass(self, step: Step) -> None:
        """Seconds pass: for a clock that stands they cost no time, and a slow machine cannot add to them."""
        if not self.clock_stands:
            time.sleep(int(step.text))
        elif not self._set_clock(step.text):
            raise Mismatch("the clock could not be moved")

    def _do_silence(self, step: Step) -> None:
        """Nothing may come: for a while, or (no time given) before a barrier is answered."""
        channel = self._channel(step.conn)
        if step.text:
            self._pump_for(channel, float(step.text))
        elif isinstance(channel, UdpChannel):
            self._pump_for(channel, UDP_SILENCE_S)
        else:
            self._barrier(step.conn, channel)
        if channel.buffer:
            raise Mismatch("expected silence")

    def _do_closed(self, step: Step) -> None:
        channel = self._channel(step.conn)
        try:
            while not channel.buffer:
                channel.pump(time.monotonic() + PATIENCE_S)
        except ChannelClosed:
            return
        except ChannelTimeout:
            raise Mismatch("the server did not close the connection") from None
        raise Mismatch("bytes instead of a close")

    def _do_close(self, step: Step) -> None:
        self._channel(step.conn)
        self.channels.pop(step.conn).close()

    def _do_half_close(self, step: Step) -> None:
        self._channel(step.conn).half_close()

    def _do_reset(self, step: Step) -> None:
        """Closes with a TCP reset, as a crashed client's machine would."""
        channel = self._channel(step.conn)
        linger = struct.pack("ii", 1, 0)
        channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._do_close(step)

    def _do_within(self, step: Step) -> None:
        raise ValueError("'within' must be the first step of its group")

    def _do_exited(self, step: Step) -> None:
        status = self.server.wait_exit()
        self.exited = True
        if status != int(step.text or "0"):
            raise Mismatch(f"exit status {status}")

    # --- UDP frames ---------------------------------------------------------------------

    def _do_send_datagram(self, step: Step) -> None:
        """>d id seq total reserved text: one datagram, its frame header spelled out."""
        self._channel(step.conn).sock.send(self._datagram(step))

    def _datagram(self, step: Step) -> bytes:
        parts = step.text.split(" ", 4)
        frame = UDP_HEADER.pack(*(binary.parse_int(n) for n in parts[:4]))
        return frame + self.texts.expand("".join(parts[4:]))

    def _do_expect_datagram(self, step: Step) -> None:
        wanted = self._datagram(step)
        channel = self._channel(step.conn)
        got = channel.receive_datagram(time.monotonic() + PATIENCE_S)
        if got != wanted:
            shown = binary.quote(wanted, 300), binary.quote(got, 300)
            raise Mismatch("expected %s, received %s" % shown)

    # --- the end ------------------------------------------------------------------------

    def _barrier(self, name: str, channel: StreamChannel) -> None:
        """Everything sent so far has been answered once this returns; raises if it was loud."""
        if self.kinds.get(name) == "binary":
            channel.send(binary.encode_request("noop", {"opaque": b"0xfeedbeef"}))
            marker = binary.HEADER.pack(0x81, 0x0A, 0, 0, 0, 0, 0, 0xFEEDBEEF, 0)
        else:
            channel.send(b"mn\r\n")
            marker = b"MN\r\n"
        deadline = time.monotonic() + PATIENCE_S
        while not channel.buffer.endswith(marker):
            channel.pump(deadline)
        del channel.buffer[-len(marker) :]

    def _check_nothing_left(self) -> None:
        """Every connection must be quiet, and in step with its server, at the end."""
        if not self.exited and not self.server.alive():
            log = self.server.log()[-2000:]
            raise Mismatch(f"{self.transcript.path}: the server has ended\n{log}")
        for name, channel in self.channels.items():
            try:
                if isinstance(channel, UdpChannel):
                    self._pump_for(channel, 0.01)
                elif self.transcript.barrier and not channel.ended and not self.exited:
                    self._barrier(name, channel)
            except (ChannelTimeout, ChannelClosed, ChannelFault) as error:
                raise Mismatch(
                    f"{self.transcript.path}: [{self.target}, {self.transport}] connection {name}"
                    f" is not in step at the end: {error};"
                    f" unread: {binary.quote(bytes(channel.buffer), 300)}"
                ) from None
            if channel.buffer:
                raise Mismatch(
                    f"{self.transcript.path}: [{self.target}, {self.transport}] bytes left over on"
                    f" connection {name}: {binary.quote(bytes(channel.buffer), 300)}"
                )
