# SPDX-License-Identifier: Apache-2.0
"""The player must notice whatever a server does wrong: played against servers that only pretend."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.channels import UDP_HEADER
from harness.dialogue import TranscriptError, parse
from harness.player import Mismatch, Player
from harness.texts import pattern


class Pretender:
    """Answers each received chunk with the next scripted bytes; None closes the connection."""

    def __init__(self, replies: list[bytes | None], udp: bool = False):
        self.target = SimpleNamespace(name="warpcached")
        self.pid = 4711
        self.replies = replies
        kind = socket.SOCK_DGRAM if udp else socket.SOCK_STREAM
        self.socket = socket.socket(socket.AF_INET, kind)
        self.socket.bind(("127.0.0.1", 0))
        if not udp:
            self.socket.listen()
        self.address = self.socket.getsockname()
        self.thread = threading.Thread(target=self._udp if udp else self._stream, daemon=True)
        self.thread.start()

    def alive(self) -> bool:
        return True

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, 5)

    def connect_udp(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect(self.address)
        return sock

    def _stream(self) -> None:
        peer, _ = self.socket.accept()
        with peer:
            for reply in self.replies:
                data = peer.recv(65536)
                if not data or reply is None:
                    return
                peer.sendall(reply + (b"MN\r\n" if data == b"mn\r\n" else b""))
            while data := peer.recv(65536):
                if data == b"mn\r\n":
                    peer.sendall(b"MN\r\n")

    def _udp(self) -> None:
        for reply in self.replies:
            data, peer = self.socket.recvfrom(65536)
            for datagram in reply:
                self.socket.sendto(data[:2] + datagram, peer)


def play(tmp_path: Path, steps: str, replies: list, transport: str = "tcp") -> None:
    path = tmp_path / "case.txt"
    path.write_text("title: case\n\n" + steps)
    Player(parse(path), Pretender(replies, transport == "udp"), transport).run()


def test_right_answers_pass(tmp_path):
    steps = "> get a\n~ VALUE a 0 1 (?P<cas>\\d+)\n< x\n< END\n\n> again {cas} {cas+1}\n< OK\n"
    play(tmp_path, steps, [b"VALUE a 0 1 77\r\nx\r\nEND\r\n", b"OK\r\n"])


@pytest.mark.parametrize(
    "reply",
    [
        b"ENX\r\n",
        b"END\n\n",
        b"END\r\nmore\r\n",
        b"\r\nEND\r\n",
        b"END",
        None,
    ],
)
def test_wrong_answers_fail(tmp_path, reply, monkeypatch):
    monkeypatch.setattr("harness.player.PATIENCE_S", 0.3)
    with pytest.raises(Mismatch):
        play(tmp_path, "> get a\n< END\n", [reply])


@pytest.mark.parametrize(
    ("steps", "replies"),
    [
        ("> a\nsilence\n", [b"loud\r\n"]),
        ("> a\nclosed\n", [b"still here\r\n"]),
        ("> a\n... END\n? STAT x \\d+\n", [b"STAT x y\r\nEND\r\n"]),
        ("> a\n... END\n?! STAT x .*\n", [b"STAT x y\r\nEND\r\n"]),
        ("> a\n... END\n", [b"SERVER_ERROR no\r\n"]),
        (">b get key=a\n<b get status=not_found\n", [b"\x81\0\0\0\0\0\0\x05" + bytes(16)]),
        (">b get key=a\n<b get\n", [b"\x81\0\0\0\x04\0\0\0\0\0\0\x04" + bytes(12) + b"\0\0\0\1"]),
        ("> a {unknown}\n< x\n", [b"x\r\n"]),
    ],
)
def test_other_expectations_fail_too(tmp_path, steps, replies, monkeypatch):
    monkeypatch.setattr("harness.player.PATIENCE_S", 0.3)
    with pytest.raises(Mismatch):
        play(tmp_path, steps, replies)


def frame(sequence: int, total: int, data: bytes, reserved: int = 0) -> bytes:
    return UDP_HEADER.pack(0, sequence, total, reserved)[2:] + data


def test_udp_replies_are_put_together_in_order(tmp_path):
    datagrams = [frame(2, 3, b"c"), frame(0, 3, b"a"), frame(1, 3, b"b")]
    play(tmp_path, "> a\n<- abc\n", [datagrams], "udp")


@pytest.mark.parametrize(
    "datagrams",
    [
        [frame(0, 2, b"a"), frame(1, 3, b"bc")],
        [frame(0, 2, b"a"), frame(0, 2, b"bc")],
        [frame(1, 1, b"abc")],
        [frame(0, 1, b"abc", 1)],
        [frame(0, 1, b"")],
        [frame(0, 1, b"a"), frame(0, 1, b"bc")],
        [frame(0, 1, b"abc" + bytes(1390))],
    ],
)
def test_wrong_udp_frames_fail(tmp_path, datagrams, monkeypatch):
    monkeypatch.setattr("harness.player.PATIENCE_S", 0.3)
    with pytest.raises(Mismatch):
        play(tmp_path, "> a\n<- abc\n", [datagrams], "udp")


@pytest.mark.parametrize(
    "text",
    [
        "> get a\n",
        "title: t\n",
        "title: t\n\nnonsense here\n",
        "title: t\n\n> a \n",
        "title: t\n\nmemcached: < ERROR\n",
        "title: t\nonly: warpcached\n\n> a\n",
        "title: t\ntransports: pigeon\n\n> a\n",
    ],
)
def test_malformed_transcripts_are_refused(tmp_path, text):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(TranscriptError):
        parse(path)


def test_pattern_tells_positions_apart():
    data = pattern(100_000)
    assert len(data) == 100_000
    assert all(data[i : i + 16] != data[i + 1400 : i + 1416] for i in range(0, 90_000, 97))
