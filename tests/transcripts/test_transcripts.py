# SPDX-License-Identifier: Apache-2.0
"""Plays every transcript below this folder, per target and per transport."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from harness.dialogue import TARGETS, parse
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.player import Mismatch, Player
from harness.servers import start_server

HERE = Path(__file__).resolve().parent
FILES = sorted(HERE.glob("*/*.txt"))
ATTEMPTS_MAX = 5
SLOW_S = 2.0  # beyond what the dialogue itself waits: its times may be this much older
WAITS = ("sleep", "pass", "silence", "within")


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


def again_where_slow(play, waits_s: float, slow_s: float = SLOW_S) -> None:
    """A dialogue that fails after a quick attempt has failed. A machine without free processors spoils an attempt by taking long:
    the dialogue is played again. One that got no answer is not."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        begun = time.monotonic()
        try:
            return play()
        except Mismatch:
            took_s = time.monotonic() - begun
            if attempt == ATTEMPTS_MAX or not waits_s + slow_s <= took_s < PATIENCE_S:
                raise


def waits_s(transcript) -> float:
    """How long the dialogue waits by itself, at most."""
    return sum(float(step.text or 0) for step in transcript.steps() if step.verb in WAITS)


def test_transcript(transcript, target_name, transport, server_pool):
    again_where_slow(lambda: _play(transcript, target_name, transport, server_pool), waits_s(transcript))


def _play(transcript, target_name, transport, server_pool) -> None:
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


@pytest.mark.parametrize(("takes_s", "attempts"), [(0.0, 1), (0.02, ATTEMPTS_MAX)])
def test_a_dialogue_is_played_again_only_where_the_machine_was_slow(takes_s, attempts):
    played = []

    def play() -> None:
        played.append(1)
        time.sleep(takes_s)
        raise Mismatch("wrong")

    with pytest.raises(Mismatch):
        again_where_slow(play, waits_s=0.0, slow_s=0.02 if takes_s else PATIENCE_S)
    assert len(played) == attempts


def test_the_second_attempt_counts():
    outcomes = iter([Mismatch("late"), None])

    def play() -> None:
        time.sleep(0.01)
        if (outcome := next(outcomes)) is not None:
            raise outcome

    again_where_slow(play, waits_s=0.0, slow_s=0.01)
    assert next(outcomes, "none left") == "none left"
