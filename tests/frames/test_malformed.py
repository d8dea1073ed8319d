# SPDX-License-Identifier: Apache-2.0
"""Malformed, reordered, repeated and changed frames through the server's ports, on whatever engine the program has.

tests/packets says what each frame of its cases is answered with. Here are many at a time, beside requests that are right, and
each frame must be counted as what it is.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from harness.exchange import ask
from harness.fixtures import require_target
from harness.frame_servers import PORTS, XDP_MTU, FrameServer
from packets import frames as made

from .changed_frames import changed, known_frames, without_unique

LONG = "WARPCACHE_LONG_TESTS" in os.environ
WINDOW = 250  # frames that are sent before the server has counted those before
SEEDS = (1, 2, 3, 4) if LONG else (1,)
GOOD = "request"


COUNTED = {
    GOOD: "frames_requests",
    "truncated": "frames_truncated",
    "bad_checksum": "frames_bad_checksum",
    "fragment": "frames_fragments",
    "unsupported": "frames_unsupported",
    "malformed": "frames_malformed",
    "not_for_us": "frames_not_for_us",
}


@pytest.fixture(params=["memif", "ring", "tap", "af_xdp"])
def server(request, tmp_path):
    started = PORTS[request.param](require_target("warpcached"), tmp_path, ("-m", "64"))
    yield started
    # Whatever came, it serves its sockets and ends well.
    assert ask(started.sock, b"mn\r\n") == b"MN\r\n"
    assert started.stop() == 0


def settle(server: FrameServer, frames: int) -> dict[str, int]:
    stats = server.settled(frames, 0)
    assert stats["frames_received"] == frames, stats
    return stats


def marker(number: int) -> tuple[bytes, bytes]:
    """A request that no test sends otherwise, and its reply: all replies to earlier frames come before it."""
    form = made.PLAIN.with_(client_port=65001)
    return made.request(b"mn\r\n", form, number % 65536), made.replies(b"MN\r\n", form, number % 65536)[0]


class Player:
    """Sends frames and keeps the replies."""

    def __init__(self, server: FrameServer):
        self.server = server
        self.sent = 0

    def play(self, frames: list[bytes], window: int = WINDOW) -> list[bytes]:
        replies = []
        for at in range(0, len(frames), window):
            some = frames[at : at + window]
            self.server.send(some)
            self.sent += len(some)
            settle(self.server, self.sent)
            # Counted, perhaps not yet sent: the marker's burst is a later one.
            request, last = marker(self.sent)
            self.server.send([request])
            self.sent += 1
            while (reply := self.server.replies(1)[0]) != last:
                replies.append(reply)
        return replies

    def verdicts(self) -> dict[str, int]:
        stats = settle(self.server, self.sent)
        return {name: stats[name] for name in COUNTED.values()}


def malformed_frames() -> list[tuple[str, bytes]]:
    """Frames of every kind, each with what it is counted as."""
    get = made.memcached_header(1) + b"get a\r\n"
    good, plain = made.frame(get), made.PLAIN
    found = [("truncated", good[:size]) for size in range(14, 42)]
    found += [("truncated", made.frame(get, plain.with_(ip_size=size))) for size in (0, 19, 27, 1000, 65535)]
    found += [("truncated", made.frame(get, plain.with_(udp_size=size))) for size in (0, 7, 100, 65535)]
    found += [("bad_checksum", made.frame(get, plain.with_(udp_checksum=number))) for number in (1, 0x1234, 0xFFFE)]
    found += [("bad_checksum", good[:24] + bytes([good[24] ^ bit]) + good[25:]) for bit in (1, 0x80)]
    # First, middle and last fragments, and floods of them with the same number.
    found += [("fragment", made.frame(get, plain.with_(fragment=number))) for number in (0x2000, 0x2001, 1, 185, 0x1FFF)]
    found += [("fragment", made.frame(get, plain.with_(fragment=0x2000 | at, identification=7))) for at in range(0, 64, 8)]
    # Options: as many as IPv4 has room for are answered; of IPv6's extension headers four, with options for all hops first.
    for options in (b"\1" * 40, b"\x44\x28\x05\0" + bytes(36), b"\0" * 40, b"\x07\x27" + bytes(38)):
        found.append((GOOD, made.frame(get, plain.with_(options=options))))
    hops, target = b"\0\0\1\4" + bytes(4), b"\x3c\0\1\4" + bytes(4)
    last = b"\x11" + target[1:]
    for first, chain in ((0, b""), (60, b""), (60, target), (60, target * 3), (0, target * 3)):
        found.append((GOOD, made.frame(get, made.Form(version=6, extension=chain + last, protocol=first))))
    for first, chain in ((0, hops), (0, hops * 59), (60, hops), (60, target * 4), (60, target * 59)):
        found.append(("unsupported", made.frame(get, made.Form(version=6, extension=chain + last, protocol=first))))
    for route in (b"\x11\0\0\1", b"\x11\0\3\xff"):
        found.append(("unsupported", made.frame(get, made.Form(version=6, extension=route + bytes(4), protocol=43))))
    for options in (b"\0\1\5", b"\x0f\1\4", b"\xff\1\4", b"\0\x1e\xff"):
        form = made.Form(version=6, extension=(b"\x11" + options).ljust(8, b"\0"), protocol=0)
        found.append(("truncated", made.frame(get, form)))
    chained = made.Form(version=6, extension=target * 2 + last, protocol=60)
    found += [("truncated", made.frame(get, chained.with_(ip_size=size))) for size in (0, 7, 8, 20, 24, 31)]
    found += [("truncated", made.frame(get, chained)[:size]) for size in range(54, 86)]
    found.append(("fragment", made.frame(get, chained.with_(extension=b"\x2c" + last[1:] + b"\x11" + bytes(7)))))
    for count in (3, 4, 30, 300):
        found.append(("unsupported", made.frame(get, plain.with_(tags=((0x8100, 5),) * count))))
    found += [("malformed", made.frame(payload)) for payload in (b"", b"\0" * 4, made.memcached_header(1))]
    found += [("malformed", made.frame(made.memcached_header(1, number, 3) + b"get a\r\n")) for number in (0, 1, 2)]
    found += [("not_for_us", made.frame(get, plain.with_(port=port))) for port in (1, 11210, 53)]
    found += [("not_for_us", made.frame(get, plain.with_(protocol=number))) for number in (1, 6, 255)]
    return found


def test_every_kind_in_numbers(server):
    """Beside requests that are right, which are all answered."""
    chance = random.Random(1)
    kinds = malformed_frames() * (40 if LONG else 3)
    forms = [made.PLAIN.with_(client_port=30000 + number) for number in range(len(kinds))]
    wanted = Counter(kind for kind, _ in kinds)
    sent = [frame for _, frame in kinds] + [made.request(b"mn\r\n", form) for form in forms]
    chance.shuffle(sent)
    player = Player(server)
    replies = Counter(player.play(sent))
    for form in forms:
        assert replies[made.replies(b"MN\r\n", form)[0]] == 1
    assert sum(replies.values()) == len(forms) + wanted[GOOD]
    stats = settle(server, player.sent)
    markers = player.sent - len(sent)
    for kind, name in COUNTED.items():
        more = len(forms) + markers if kind == GOOD else 0
        assert stats[name] == wanted[kind] + more, name
    for name in ("receive_failed", "receive_missed", "send_failed", "replies_dropped"):
        assert stats["frames_" + name] == 0, name


def test_reordered_and_repeated(server):
    """A datagram has no order and may come again: each is answered, with what belongs to its own request."""
    chance = random.Random(2)
    for number in range(200):
        assert ask(server.sock, b"set key%d 0 0 3\r\n%03d\r\n" % (number, number)) == b"STORED\r\n"
    requests = []
    for number in range(200):
        form = made.PLAIN.with_(client_port=20000 + number % 50, checksum=number % 3 != 0)
        texts = (b"get key%d\r\n" % number, b"VALUE key%d 0 3\r\n%03d\r\nEND\r\n" % (number, number))
        if number % 4 == 0:
            texts = (b"set other%d 0 0 1\r\nx\r\n" % number, b"STORED\r\n")
        requests.append((made.request(texts[0], form, number), made.replies(texts[1], form, number)[0]))
    sent = [pair for pair in requests for _ in range(chance.randrange(1, 4))]
    chance.shuffle(sent)
    replies = Player(server).play([request for request, _ in sent])
    assert Counter(replies) == Counter(reply for _, reply in sent)
    for number in range(0, 200, 4):
        assert ask(server.sock, b"get other%d\r\n" % number, b"END\r\n") == b"VALUE other%d 0 1\r\nx\r\nEND\r\n" % number


def test_jumbo_frames(server):
    """A port whose buffers hold them answers; the others drop and count them, and go on."""
    sizes = (2100, 4000, 8900) if server.interface != "far0" else (XDP_MTU - 100, XDP_MTU - 20)
    frames = [made.request(b"set a%d 0 0 %d\r\n%s\r\n" % (size, size - 100, b"v" * (size - 100))) for size in sizes]
    server.send(frames)
    if server.takes_jumbo:
        assert server.replies(len(frames)) == made.replies(b"STORED\r\n") * len(frames)
        for size in sizes:
            value = b"VALUE a%d 0 %d\r\n%s\r\nEND\r\n" % (size, size - 100, b"v" * (size - 100))
            assert ask(server.sock, b"get a%d\r\n" % size, b"END\r\n") == value
        return
    dropped = server.wait_for(lambda stats: stats["frames_receive_failed"] + stats["frames_receive_missed"], len(frames))
    assert dropped == len(frames)
    server.send([made.request(b"get a%d\r\n" % sizes[0], request_id=2)])
    assert server.replies(1) == made.replies(b"END\r\n", request_id=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_changed_frames_are_answered_as_from_a_file(server, tmp_path, seed):
    """On a GPU one at a time: it orders nothing within a burst."""
    on_gpu = server.on_gpu()
    count, window = ((3000, 1) if LONG else (150, 1)) if on_gpu else ((100_000, WINDOW) if LONG else (2500, WINDOW))
    chance, known = random.Random(seed), known_frames()
    frames = [frame for frame in (changed(chance.choice(known), chance) for _ in range(count)) if len(frame) >= 14]
    folder = tmp_path / "file"
    folder.mkdir()
    by_file = PORTS["pcap"](require_target("warpcached"), folder, ("-m", "64"))
    outcomes = []
    for one in (by_file, server):
        assert ask(one.sock, b"debugtime p\r\n") == b"OK\r\n"  # items expire in neither server
        player = Player(one)
        # What differs from server to server.
        replies = [frame for frame in player.play(frames, window) if b"STAT " not in frame]
        if on_gpu:
            replies = [without_unique(reply) for reply in replies]
        outcomes.append((replies, player.verdicts()))
    assert by_file.stop() == 0
    assert outcomes[1][1] == outcomes[0][1]
    assert len(outcomes[0][0]) > len(frames) / 10
    assert outcomes[1][0] == outcomes[0][0]
