# SPDX-License-Identifier: Apache-2.0
"""The cases of this folder, played through the server, by each of its ports that keeps frames as they are.

`WARPCACHED` may be any build, with any engine: tests/simulated_gpu/warpcached runs them on the CUDA engine.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.fixtures import require_gpu, require_target, runs_on_gpu
from harness.frame_servers import PORTS, FrameServer, PeerServer

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
# What the server counts a frame as, by the verdicts of README.md.
COUNTERS = {
    "request": "frames_requests",
    "not_for_us": "frames_not_for_us",
    "truncated": "frames_truncated",
    "bad_checksum": "frames_bad_checksum",
    "fragment": "frames_fragments",
    "unsupported": "frames_unsupported",
    "malformed": "frames_malformed",
}
ENGINES = {"launch": (), "persistent": ("--gpu-mode=persistent",), "edge": ("--gpu-mode=edge",)}
# What the engine does is the same behind the other ports.
SETTINGS = [(port, mode) for port in PORTS for mode in ENGINES if mode == "launch" or port in ("pcap", "dpdk")]
# Only a GPU can be rung.
SETTINGS.append(("peer", "edge"))


class Kept:
    """The server of the last test, for the next one if that asks for the same and nothing has failed."""

    def __init__(self) -> None:
        self.setting: tuple[str, str] | None = None
        self.server: FrameServer | None = None

    def get(self, setting: tuple[str, str], folder: Path) -> FrameServer:
        if self.server is None or self.setting != setting:
            self.stop()
            port, mode = self.setting = setting
            made = {**PORTS, "peer": PeerServer}[port]
            self.server = made(require_target("warpcached"), folder, ENGINES[mode])
        return self.server

    @contextlib.contextmanager
    def playing(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            server, self.server = self.server, None
            server.stop()
            raise

    def stop(self) -> None:
        server, self.server = self.server, None
        assert server is None or server.stop() == 0


@pytest.fixture(scope="module")
def kept():
    kept = Kept()
    yield kept
    kept.stop()


@pytest.fixture(scope="module", params=SETTINGS, ids="-".join)
def setting(request) -> tuple[str, str]:
    port, mode = request.param
    target = require_target("warpcached")
    if port == "peer":
        require_gpu(target)
    if mode != "launch" and not runs_on_gpu(target):
        pytest.skip("the CPU engine has one mode")
    return port, mode


@pytest.fixture(scope="module")
def in_order() -> None:
    if runs_on_gpu(require_target("warpcached")):
        pytest.skip("a GPU orders nothing within a burst")


@pytest.fixture
def frame_server(kept, setting, tmp_path_factory) -> FrameServer:
    return kept.get(setting, tmp_path_factory.mktemp("frames"))


def matches(want: str, got: bytes) -> bool:
    return len(want) == 2 * len(got) and all(w in ("x", g) for w, g in zip(want, got.hex()))


def set_up(server: FrameServer, case: dict) -> None:
    assert ask(server.sock, b"flush_all\r\n") == b"OK\r\n"
    for command in case["setup"]:
        server.sock.sendall(command.encode("latin-1") + b"mn\r\n")
        answer = b""
        while not answer.endswith(b"MN\r\n"):
            answer += server.sock.recv(65536)
        assert b"ERROR" not in answer, command


def check(server: FrameServer, want: list[str], at: str) -> None:
    for number, (frame, got) in enumerate(zip(want, server.replies(len(want)))):
        assert matches(frame, got), f"{at}, reply {number}\nwant {frame}\ngot  {got.hex()}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_one_by_one(kept, frame_server, path):
    with kept.playing():
        play_one_by_one(frame_server, path)


def play_one_by_one(server: FrameServer, path: Path) -> None:
    before = server.stats()
    received, sent = before["frames_received"], before["frames_sent"]
    for case in json.loads(path.read_text())["cases"]:
        set_up(server, case)
        for number, step in enumerate(case["steps"], 1):
            at = f"{case['name']}, step {number}"
            if "advance_s" in step:
                advance(server, step["advance_s"])
                continue
            if not server.takes(step):
                continue
            server.send([bytes.fromhex(step["in"])])
            check(server, step["out"], at)
            received += 1
            sent += len(step["out"])
            after = server.settled(received, sent)
            assert after["frames_sent"] == sent, at
            name = COUNTERS[step["verdict"]]
            assert after[name] == before[name] + 1, f"{at} is not {step['verdict']}"
            before = after


def advance(server: FrameServer, seconds: int) -> None:
    answer = ask(server.sock, b"debugtime %d\r\n" % seconds)
    assert answer == b"OK\r\n"
    server.advanced()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_in_one_burst(in_order, kept, frame_server, path):
    """The server takes what is there: in bursts of any number. Datagrams have no order on a GPU."""
    with kept.playing():
        play_in_bursts(frame_server, path)


def play_in_bursts(server: FrameServer, path: Path) -> None:
    before = server.stats()
    received, sent = before["frames_received"], before["frames_sent"]
    for case in json.loads(path.read_text())["cases"]:
        set_up(server, case)
        frames, want = [], []
        for step in [*case["steps"], {"advance_s": 0}]:
            if "advance_s" not in step:
                if server.takes(step):
                    frames.append(bytes.fromhex(step["in"]))
                    want += step["out"]
                continue
            server.send(frames)
            check(server, want, f"{case['name']}, a burst of {len(frames)}")
            received += len(frames)
            sent += len(want)
            frames, want = [], []
            if step["advance_s"]:
                advance(server, step["advance_s"])
    after = server.settled(received, sent)
    assert (after["frames_received"], after["frames_sent"]) == (received, sent)
