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
# A message carries bytes of a stream. What is left out is about the form of datagrams of UDP: the header of each, requests
# and replies that are cut by it, what is lost. Their commands are in the dialogues of other folders, too.
NOT_OVER_UCX = {
    "udp/amplification": "a reply is larger than its datagram may cause",
    "udp/binary": "a packet in a datagram; the same packets: binary/",
    "udp/framing": "the header of datagrams",
    "udp/large_reply": "a reply in several datagrams; a large value: text/",
    "udp/malformed": "headers that are wrong; messages that are: ucx_hostile",
    "udp/multiget": "a reply in several datagrams; several keys: text/",
    "udp/noreply": "no datagram is sent at all",
    "udp/partial_storage": "the datagram ends within a value; a stream goes on",
    "udp/pipeline": "several requests in one datagram; in one message: each dialogue of several lines",
    "udp/quit": "the socket stays open, since it has no connection",
}


def names_and_transcripts():
    for path in FILES:
        transcript = parse(path)
        if transcript.runs_on("warpcached"):
            yield path.relative_to(TRANSCRIPTS).with_suffix("").as_posix(), transcript


def cases():
    """By each transport, and byte by byte, where a message may hold any part of a command."""
    for name, transcript in names_and_transcripts():
        if name in NOT_OVER_UCX:
            continue
        for transports in TRANSPORTS:
            yield pytest.param(transcript, transports, transports, id=f"{name}-{transports}")
        if "split" in transcript.transports:
            yield pytest.param(transcript, "shm", "split", id=f"{name}-split")


def test_only_dialogues_about_datagrams_are_left_out():
    """Whoever adds one that does not run here says why."""
    about_datagrams = {name for name, transcript in names_and_transcripts() if transcript.transports == ("udp",)}
    assert set(NOT_OVER_UCX) == about_datagrams


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


@pytest.mark.parametrize("transcript,transports,form", list(cases()))
def test_transcript(transcript, transports, form, servers):
    if transcript.fresh or transcript.env or transcript.files:
        server = UcxServer(
            *transcript.options, transports=transports, env=transcript.env, files=transcript.files
        )
        try:
            Player(transcript, server.server, form).run()
        finally:
            status = server.stop()
        assert status == 0, f"the server ended with {status}"
        return
    server = servers(transcript.options, transports)
    try:
        with server.sockets.connect() as sock:
            sock.sendall(b"flush_all\r\n")
            assert sock.recv(64) == b"OK\r\n"
        Player(transcript, server.server, form).run()
    except Mismatch:
        servers.drop((transcript.options, transports))
        raise
