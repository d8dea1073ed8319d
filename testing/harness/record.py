# SPDX-License-Identifier: Apache-2.0
"""Writes down what a server answers, as a transcript: a start for a new one.

    python3 testing/harness/record.py [--target memcached] [--transport tcp] FILE

FILE is a transcript in which only the sending steps matter: after each run of them the server's
actual replies are written; expectations already there are dropped. Read the result critically
before it becomes a test.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import binary  # noqa: E402
from harness.channels import ChannelClosed, ChannelTimeout  # noqa: E402
from harness.dialogue import SENDS, Step, Transcript, parse  # noqa: E402
from harness.player import Mismatch, Player  # noqa: E402
from harness.servers import find_target, start_server  # noqa: E402

QUIET_S = 0.08


def collect(player: Player, conn: str) -> tuple[bytes, bool]:
    """What comes until the server is quiet, and whether it closed the connection."""
    channel = player._channel(conn)
    closed = False
    try:
        while True:
            channel.pump(time.monotonic() + QUIET_S)
    except ChannelTimeout:
        pass
    except ChannelClosed:
        closed = True
    data = bytes(channel.buffer)
    channel.buffer.clear()
    return data, closed


def as_lines(data: bytes) -> list[str]:
    lines = data.split(b"\r\n")
    out = ["< " + binary.quote(line, 400).replace("\\s", " ") for line in lines[:-1]]
    return out + (["<- " + binary.quote(lines[-1], 400)] if lines[-1] else [])


def as_packets(data: bytes) -> list[str]:
    out = []
    while len(data) >= binary.HEADER_SIZE and data[0] == binary.MAGIC_RESPONSE:
        end = binary.HEADER_SIZE + binary.body_length(data[: binary.HEADER_SIZE])
        body = data[binary.HEADER_SIZE : end]
        out.append("<b " + binary.decode_reply(data[: binary.HEADER_SIZE], body).describe())
        data = data[end:]
    return out + (["<h " + data.hex()] if data else [])


def record(transcript: Transcript, player: Player, write) -> None:
    source = transcript.path.read_text().split("\n")
    groups = {step.line: step for step in transcript.steps()}
    sent: list[Step] = []

    def replies() -> None:
        player._flush_sends()
        for conn in dict.fromkeys(step.conn for step in sent):
            data, closed = collect(player, conn)
            is_binary = player.kinds.get(conn) == "binary" and data[:1] == b"\x81"
            prefix = "" if conn == "1" else f"@{conn} "
            for line in as_packets(data) if is_binary else as_lines(data):
                write(prefix + line)
            if closed:
                write(prefix + "closed")
                player.channels.pop(conn).close()
        sent.clear()

    for number, line in enumerate(source, 1):
        step = groups.get(number)
        if step is None or step.verb not in SENDS:
            if sent:
                replies()
            if step is None:
                if not line.startswith("@"):
                    write(line)
                continue
        if step.verb in SENDS:
            player._run_step(step)
            sent.append(step)
            write(line)
        elif step.verb in ("sleep", "close", "half-close", "reset"):
            player._run_step(step)
            write(line)
    replies()


def main() -> None:
    parser = argparse.ArgumentParser(description="record a transcript's replies")
    parser.add_argument("--target", default="memcached")
    parser.add_argument("--transport", default="tcp")
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    transcript = parse(args.file)
    server = start_server(
        find_target(args.target),
        transcript.options,
        unix=args.transport == "unix",
        udp=args.transport == "udp",
        ipv6=args.transport == "tcp6",
        env=transcript.env,
        files=transcript.files,
    )
    try:
        record(transcript, Player(transcript, server, args.transport), print)
    except Mismatch as error:
        sys.exit(str(error))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
