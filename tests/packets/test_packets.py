# SPDX-License-Identifier: Apache-2.0
"""The cases of this folder, played through the server, by each of its ports that keeps frames as they are.

`WARPCACHED` may be any build, with any engine: tests/simulated_gpu/warpcached runs them on the CUDA engine.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.fixtures import require_gpu, require_target
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


@pytest.fixture(params=SETTINGS, ids="-".join)
def frame_server(request, tmp_path):
    port, mode = request.param
    target = require_target("warpcached")
    if port == "peer":
        require_gpu(target)
    made = {**PORTS, "peer": PeerServer}[port](target, tmp_path, ENGINES[mode])
    if mode != "launch" and not made.on_gpu():
        made.stop()
        pytest.skip("the CPU engine has one mode")
    yield made
    assert made.stop() == 0


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
def test_one_by_one(frame_server, path):
    received = sent = 0
    for case in json.loads(path.read_text())["cases"]:
        set_up(frame_server, case)
        for number, step in enumerate(case["steps"], 1):
            at = f"{case['name']}, step {number}"
            if "advance_s" in step:
                advance(frame_server, step["advance_s"])
                continue
            before = frame_server.stats()
            if not frame_server.takes(step):
                continue
            frame_server.send([bytes.fromhex(step["in"])])
            check(frame_server, step["out"], at)
            received += 1
            sent += len(step["out"])
            after = frame_server.settled(received, sent)
            assert after["frames_sent"] == sent, at
            name = COUNTERS[step["verdict"]]
            assert after[name] == before[name] + 1, f"{at} is not {step['verdict']}"


def advance(server: FrameServer, seconds: int) -> None:
    answer = ask(server.sock, b"debugtime %d\r\n" % seconds)
    assert answer == b"OK\r\n"
    server.advanced()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_in_one_burst(frame_server, path):
    """The server takes what is there: in bursts of any number. Datagrams have no order on a GPU."""
    if frame_server.on_gpu():
        pytest.skip("a GPU orders nothing within a burst")
    for case in json.loads(path.read_text())["cases"]:
        set_up(frame_server, case)
        frames, want = [], []
        for step in [*case["steps"], {"advance_s": 0}]:
            if "advance_s" not in step:
                if frame_server.takes(step):
                    frames.append(bytes.fromhex(step["in"]))
                    want += step["out"]
                continue
            frame_server.send(frames)
            check(frame_server, want, f"{case['name']}, a burst of {len(frames)}")
            frames, want = [], []
            if step["advance_s"]:
                advance(frame_server, step["advance_s"])
