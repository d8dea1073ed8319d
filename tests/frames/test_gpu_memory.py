# SPDX-License-Identifier: Apache-2.0
"""--frames-gpu: buffers of frames in the GPU's memory, by DPDK's gpudev.

Without a GPU that DPDK knows it is refused. With a stand-in for one (gpudev_stand_in.cc) and the simulated GPU the frames
of a memory interface take the whole path.
"""

from __future__ import annotations

import os
import subprocess

import pytest
from harness.exchange import ask
from harness.fixtures import require_dpdk, require_target
from harness.frame_servers import MemifServer, require_frames_relay
from harness.patience import PATIENCE_S
from packets import frames as made

GPU = ("--engine=cuda", "--on-gpu-error=exit", "-m", "64")
DEVICE = "--frames=dpdk:net_null0"
pytestmark = pytest.mark.usefixtures("no_huge_pages")


def refusal(*options: str, **environment: str) -> str:
    target = require_target("warpcached")
    command = [target.path, "-u", "root", "-p", "-1", "-l", "127.0.0.1", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, **environment})
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.not_on_gpu  # whose program brings options of its own
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--frames-gpu",), "need --frames=dpdk:DEVICE"),
        (("--frames=tap:x", "--frames-gpu"), "need --frames=dpdk:DEVICE"),
        ((DEVICE, "--frames-gpu"), "--frames-gpu needs --engine=cuda and --on-gpu-error=exit"),
        ((DEVICE, "--frames-gpu", "--engine=cuda"), "--frames-gpu needs --engine=cuda and --on-gpu-error=exit"),
        ((DEVICE, "--frames-gpu", "--on-gpu-error=exit"), "--frames-gpu needs --engine=cuda and --on-gpu-error=exit"),
    ],
)
def test_options_that_it_needs(options, text):
    assert text in refusal(*options)


def test_without_a_gpu_that_dpdk_knows():
    require_dpdk()
    said = refusal(DEVICE, "--frames-gpu", *GPU, SIMT_GPU="1")
    if "built without CUDA" in said:
        pytest.skip("the server is built without CUDA")
    assert "DPDK finds no GPU" in said


@pytest.fixture
def server(tmp_path, monkeypatch):
    stand_in = require_frames_relay().with_name("gpudev_stand_in.so")
    if not stand_in.exists():
        pytest.skip("there is no stand-in for a GPU")
    monkeypatch.setenv("SIMT_GPU", "1")
    said = refusal(DEVICE, "--frames-gpu", *GPU, SIMT_GPU="1")
    if "DPDK finds no GPU" not in said:
        pytest.skip("there is no simulated GPU")
    monkeypatch.setenv("LD_PRELOAD", str(stand_in))
    started = MemifServer(require_target("warpcached"), tmp_path, ("--frames-gpu", *GPU))
    monkeypatch.delenv("LD_PRELOAD")
    yield started
    assert started.stop() == 0


def test_requests_whose_frames_are_in_the_gpus_memory(server):
    assert server.on_gpu() and "(in the GPU's memory)" in server.server.log()
    server.send([made.request(b"set a 5 0 3\r\nabc\r\n")])
    assert server.replies(1) == made.replies(b"STORED\r\n")
    assert ask(server.sock, b"get a\r\n", b"END\r\n") == b"VALUE a 5 3\r\nabc\r\nEND\r\n"
    # One key, several keys, a reply of several datagrams, and a reply in the request's own buffer.
    large = b"x" * 5000
    assert ask(server.sock, b"set b 0 0 5000\r\n%s\r\n" % large) == b"STORED\r\n"
    hit = b"VALUE b 0 5000\r\n" + large + b"\r\nEND\r\n"
    for text, answer in (
        (b"get a\r\n", b"VALUE a 5 3\r\nabc\r\nEND\r\n"),
        (b"get nothing\r\n", b"END\r\n"),
        (b"get a nothing a\r\n", b"VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n"),
        (b"get b\r\n", hit),
        (b"mg a v\r\n", b"VA 3\r\nabc\r\n"),
    ):
        want = made.replies(answer)
        server.send([made.request(text)])
        assert server.replies(len(want)) == want, text
    stats = server.settled(6, 0)
    assert stats["frames_requests"] == 6 and stats["frames_send_failed"] == 0


def test_many_and_malformed_ones(server):
    frames = [made.request(b"set key%d 0 0 2\r\n%02d\r\n" % (number, number), request_id=number) for number in range(90)]
    server.send(frames)
    assert sorted(server.replies(90)) == sorted(made.replies(b"STORED\r\n", request_id=number)[0] for number in range(90))
    good = made.request(b"get key7\r\n")
    server.send([good[:30], made.request(b"get key7\r\n", made.PLAIN.with_(port=53)), good])
    assert server.replies(1) == made.replies(b"VALUE key7 0 2\r\n07\r\nEND\r\n")
    stats = server.settled(93, 0)
    assert (stats["frames_truncated"], stats["frames_not_for_us"], stats["frames_requests"]) == (1, 1, 91)
