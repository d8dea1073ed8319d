# SPDX-License-Identifier: Apache-2.0
"""Plays the transcripts of tests/transcripts over active messages: by shared memory and by TCP."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dialogue import parse
from harness.player import Mismatch, Player
from harness.ucx import UcxServer

TRANSCRIPTS = Path(__file__).resolve().parents[1] / "transcripts"
FILES = sorted(TRANSCRIPTS.glob("*/*.txt"))
TRANSPORTS = ("shm", "tcp")
SERVERS_MAX = 4
# What a message cannot express, or what a bridge adds to.
NOT_OVER_UCX: dict[str, str] = {}


def cases():
    for path in FILES:
        transcript = parse(path)
        name = path.relative_to(TRANSCRIPTS).with_suffix("").as_posix()
        if not transcript.runs_on("warpcached") or "tcp" not in transcript.transports:
            continue
        for transports in TRANSPORTS:
            marks = [pytest.mark.skip(NOT_OVER_UCX[name])] if name in NOT_OVER_UCX else []
            yield pytest.param(transcript, transports, id=f"{name}-{transports}", marks=marks)


@pytest.fixture(scope="module")
def servers():
    started: dict[tuple, UcxServer] = {}

    def get(options: tuple[str, ...], transports: str) -> UcxServer:
        key = (options, transports)
        if key not in started:
            while len(started) >= SERVERS_MAX:
                drop(next(iter(started)))
            started[key] = UcxServer(*options, transports=transports)
        return started[key]

    def drop(key: tuple) -> None:
        assert started.pop(key).stop() == 0

    get.drop = drop
    yield get
    for key in list(started):
        drop(key)


@pytest.mark.parametrize("transcript,transports", list(cases()))
def test_transcript(transcript, transports, servers):
    if transcript.fresh or transcript.env or transcript.files:
        server = UcxServer(
            *transcript.options, transports=transports, env=transcript.env, files=transcript.files
        )
        try:
            Player(transcript, server.server, transports).run()
        finally:
            status = server.stop()
        assert status == 0, f"the server ended with {status}"
        return
    server = servers(transcript.options, transports)
    try:
        with server.sockets.connect() as sock:
            sock.sendall(b"flush_all\r\n")
            assert sock.recv(64) == b"OK\r\n"
        Player(transcript, server.server, transports).run()
    except Mismatch:
        servers.drop((transcript.options, transports))
        raise
