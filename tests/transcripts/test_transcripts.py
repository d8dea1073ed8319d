# SPDX-License-Identifier: Apache-2.0
"""Plays every transcript below this folder, per target and per transport."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.dialogue import TARGETS, parse
from harness.fixtures import require_target
from harness.player import Mismatch, Player
from harness.servers import start_server

HERE = Path(__file__).resolve().parent
FILES = sorted(HERE.glob("*/*.txt"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "transcript" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--target")
    targets = TARGETS if chosen == "both" else (chosen,)
    cases = []
    for path in FILES:
        transcript = parse(path)
        name = path.relative_to(HERE).with_suffix("").as_posix()
        for target in targets:
            if transcript.runs_on(target):
                for transport in transcript.transports:
                    case = f"{target}-{name}-{transport}"
                    cases.append(pytest.param(transcript, target, transport, id=case))
    metafunc.parametrize("transcript,target_name,transport", cases)


def test_transcript(transcript, target_name, transport, server_pool):
    target = require_target(target_name)
    if transcript.fresh or transcript.env or transcript.files:
        server = start_server(
            target,
            transcript.options,
            unix=transport == "unix",
            udp=transport == "udp",
            ipv6=transport == "tcp6",
            env=transcript.env,
            files=transcript.files,
        )
        try:
            Player(transcript, server, transport).run()
        finally:
            status = server.stop()
        assert target_name == "memcached" or status == 0, f"the server ended with {status}"
        return
    server = server_pool.get(target, transcript.options, transport)
    try:
        _empty(server)
        Player(transcript, server, transport).run()
    except Mismatch:
        server_pool.drop(server)
        raise


def _empty(server) -> None:
    """Leaves nothing behind from the transcript before."""
    with server.connect() as sock:
        sock.sendall(b"flush_all\r\n")
        if sock.recv(64) != b"OK\r\n":
            raise Mismatch("flush_all before the transcript did not answer OK")
