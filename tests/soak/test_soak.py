# SPDX-License-Identifier: Apache-2.0
"""A soak in short, and proof that its checks can fail."""

from __future__ import annotations

import os

import pytest
from faults.support import others_wait_s_max
from harness.exchange import ask
from harness.fixtures import require_target
from harness.programs import find_replay_client
from harness.servers import start_server

from soak.channel import Wrong
from soak.owner import Owner
from soak.rivals import Rivals
from soak.shared import Happening, Situation
from soak.soak import run_soak
from soak.watch import Broken, check_one, check_two, parse_stats

SECONDS = 40 if "WARPCACHE_LONG_TESTS" in os.environ else 15
STEPS_MAX = 20_000


@pytest.fixture(scope="module")
def target():
    return require_target("warpcached")


@pytest.mark.long
def test_mixed_load_with_faults(target, tmp_path):
    if find_replay_client() is None:
        pytest.fail("replay_client is not built (set REPLAY_CLIENT=path)", pytrace=False)
    result = run_soak(target, SECONDS, 2026, tmp_path)
    assert result.problems == [], result
    assert result.counts["operations"] > 1000 and result.counts["hits"] > 100, result
    assert len(result.faults) >= 10, result


@pytest.fixture
def keeping(target):
    """A server that may lose nothing, a foreign connection to it, and its situation."""
    server = start_server(target, ["-m", "64", "-M", "-t", "2"], udp=True)
    wait_s_max = others_wait_s_max(server)
    where = Situation("keeping", server.port, False, 1, wait_s_max, Happening(), Happening(), Happening())
    with server.connect() as sock:
        yield where, sock
    assert server.stop() == 0


def step_until_wrong(client, meddle) -> str:
    """The client's complaint after another client changes its data. Before that it must not complain."""
    try:
        for _ in range(200):
            client.step()
        for _ in range(STEPS_MAX):
            meddle()
            client.step()
    except Wrong as wrong:
        return str(wrong)
    finally:
        client.close()
    return ""


def test_honest_clients_find_nothing_on_a_good_server(keeping):
    where, _ = keeping
    for client in (Owner(where, 0), Rivals(where, 0)):
        for _ in range(300):
            client.step()
        client.close()


def test_an_owner_sees_another_writer(keeping):
    where, sock = keeping
    owner = Owner(where, 0)
    key = owner.keys[-1]
    said = step_until_wrong(owner, lambda: ask(sock, b"set %s 0 0 3\r\nbad\r\n" % key))
    assert repr(key) in said and ("should be" in said or "came back" in said), said


def test_an_owner_misses_what_is_deleted(keeping):
    where, sock = keeping
    owner = Owner(where, 0)
    said = step_until_wrong(owner, lambda: ask(sock, b"delete %s\r\n" % owner.keys[-1]))
    assert "is lost" in said, said


def test_an_owner_misses_what_a_flush_took_that_nobody_reported_to(keeping):
    where, sock = keeping
    assert "is lost" in step_until_wrong(Owner(where, 0), lambda: ask(sock, b"flush_all\r\n"))


def test_an_owner_knows_what_a_flush_should_have_taken(keeping):
    where, _ = keeping

    def flush_in_words_only() -> None:
        where.flushes.begin()
        where.flushes.end()

    assert "came back" in step_until_wrong(Owner(where, 0), flush_in_words_only)


def test_an_owner_knows_what_should_have_expired(keeping):
    where, _ = keeping

    def let_time_pass_in_words_only() -> None:
        where.clock_shift_s.begin(10_000)
        where.clock_shift_s.end()

    assert "came back" in step_until_wrong(Owner(where, 0), let_time_pass_in_words_only)


def test_rivals_see_a_foreign_update(keeping):
    where, sock = keeping
    rivals = Rivals(where, 0)
    start = rivals._start

    def start_and_meddle(value: bytes):
        # As a lost update looks: the key is not as its writers left it.
        known = start(value)
        ask(sock, b"append %s 0 0 1\r\n7\r\n" % rivals.key)
        return known

    def meddle() -> None:
        rivals._start = start_and_meddle

    assert step_until_wrong(rivals, meddle)


def test_statistics_that_do_not_fit_are_seen(keeping):
    _, sock = keeping
    good = parse_stats(ask(sock, b"stats\r\n", b"END\r\n")) | {
        "segments_in_all": 100,
        "limit_maxbytes": 1 << 20,
    }
    check_one(good, lossy=False)
    check_two(good, good)
    for name, value in (
        ("limit_maxbytes", 1 << 40),
        ("bytes", 1 << 40),
        ("curr_items", good["total_items"] + 1),
        ("curr_connections", 100_000),
        ("evictions", 1),
        ("segments_pinned", 101),
    ):
        with pytest.raises(Broken):
            check_one(good | {name: value}, lossy=False)
    with pytest.raises(Broken):
        check_two(good, good | {"total_items": good["total_items"] - 1})
    with pytest.raises(Broken):
        check_two(good | {"get_hits": 1}, good)
    with pytest.raises(Broken):
        check_two(good | {"cmd_get": 1}, good | {"cmd_get": 1})
