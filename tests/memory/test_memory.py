# SPDX-License-Identifier: Apache-2.0
"""Memory over the wire, in short; bench/memory/run does the same at length.

What is compared is measured on both servers in the same test: no figure of memcached's is written
down here. Every value that comes back is checked whole by the replay client.
"""

from __future__ import annotations

import os

import pytest
from harness import measure
from harness.fixtures import require_target
from harness.programs import find_replay_client

# The sanitizers occupy memory of their own: what a process occupies says nothing then.
occupies = pytest.mark.skipif(
    "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ,
    reason="the sanitizers occupy memory of their own",
)


@pytest.fixture(autouse=True)
def replay_client():
    if find_replay_client() is None:
        pytest.fail("replay_client is not built (set REPLAY_CLIENT=path)", pytrace=False)


@pytest.fixture
def ours():
    return require_target("warpcached")


@pytest.fixture
def reference():
    return require_target("memcached")


LONG = "WARPCACHE_LONG_TESTS" in os.environ
HIT_RATIOS = [(16, 600_000, 1), (32, 800_000, 4)]  # MB, requests, clients
if LONG:
    HIT_RATIOS += [(16, 1_000_000, 1), (64, 1_500_000, 4), (64, 1_500_000, 1), (256, 5_000_000, 1)]
CAPACITY_MB = 64 if LONG else 32


@pytest.mark.long
@pytest.mark.parametrize(("megabytes", "requests", "clients"), HIT_RATIOS)
def test_hit_ratio_is_at_least_memcacheds(ours, reference, megabytes, requests, clients):
    theirs = measure.hit_ratio(reference, megabytes, requests, clients)
    mine = measure.hit_ratio(ours, megabytes, requests, clients)
    assert theirs["evictions"] > 0, "the stream does not fill the reference: nothing is compared"
    assert mine["out_of_memory"] == 0
    assert mine["hit_ratio"] >= theirs["hit_ratio"], (mine, theirs)


@pytest.mark.long
@pytest.mark.parametrize(
    "shape", [measure.SMALL, measure.KILOBYTE, measure.ETC, measure.MIXED], ids=lambda s: s.sizes
)
def test_holds_at_least_as_many_items(ours, reference, shape):
    theirs = measure.capacity(reference, CAPACITY_MB, shape)
    mine = measure.capacity(ours, CAPACITY_MB, shape)
    assert mine["evicted"] and theirs["evicted"], (mine, theirs)
    assert mine["items_at_first_eviction"] >= theirs["items_at_first_eviction"], (mine, theirs)
    assert mine["items_held"] >= theirs["items_held"], (mine, theirs)


@occupies
@pytest.mark.parametrize("shape", [measure.SMALL, measure.LARGE], ids=lambda s: s.sizes)
@pytest.mark.parametrize("megabytes", [16, 64])
def test_occupies_the_limit_and_the_stated_overhead_at_most(ours, megabytes, shape):
    row = measure.resident(ours, megabytes, shape)
    assert row["out_of_memory"] == 0, row
    assert row["peak_kib"] <= row["allowed_kib"], row
    assert row["peak_kib"] >= megabytes * 1024 // 2, row  # or the filling did not fill


def test_large_values_asked_at_once_all_come(ours, reference):
    theirs = measure.at_once(reference, 64, measure.HUGE, 40)
    row = measure.at_once(ours, 64, measure.HUGE, 40)
    assert theirs["hits"] == 40, theirs
    assert (row["stored"], row["evictions"], row["hits"]) == (40, 0, 40), row


@occupies
def test_many_connections_occupy_what_is_stated(ours):
    row = measure.connections(ours, 64, idle=400, busy=100)
    assert row["peak_kib"] <= row["allowed_kib"], row


@occupies
@pytest.mark.parametrize("commands", [100, 8_000, 60_000])
def test_datagrams_of_many_commands_occupy_no_more_than_the_buffers(ours, commands):
    """Line ends are the shortest commands: sixteen bytes of the batch and seven of the reply each."""
    row = measure.datagrams(ours, commands, datagrams=60, rounds=5)
    assert row["replies"] > 0 or commands == 60_000, row  # those have more commands than is allowed
    assert row["grown_kib"] <= row["allowed_kib"], row


@pytest.mark.long
def test_without_eviction_sets_fail_until_there_is_room(ours, reference):
    row = measure.no_eviction(ours, 16)
    theirs = measure.no_eviction(reference, 16)
    assert row["out_of_memory"] > 0, row
    assert row["evictions"] == 0, row
    assert row["held"] == row["stored"], row  # whatever was acknowledged is there
    assert row["stored"] >= theirs["stored"], (row, theirs)
    assert row["kept"] == row["stored"] - row["removed"], row
    assert row["stored_after_delete"] >= row["removed"] * 0.95, row
    assert row["out_of_memory_after_delete"] > 0, row
    assert row["stored_after_expiry"] >= row["stored"] * 0.95, row
    assert row["share_refilled_larger"] >= 0.9, row


@pytest.mark.long
def test_memory_of_what_expires_comes_back_every_time(ours):
    row = measure.recycling(ours, 16, rounds=6)
    assert row["stored"] > 50_000 and row["out_of_memory"] == 0, row


@pytest.mark.long
@occupies
def test_limit_moves_at_run_time(ours):
    row = measure.limit_changes(ours, 64)
    assert (row["reply_down"], row["reply_up"]) == ("OK", "OK"), row
    assert (row["limit_down"], row["limit_up"]) == (32 * measure.MIB, 96 * measure.MIB), row
    assert row["rss_down_kib"] <= row["allowed_down_kib"], row
    assert row["rss_down_refilled_kib"] <= row["allowed_down_kib"], row
    assert row["rss_up_kib"] <= row["allowed_up_kib"], row
    # The items that stay after the limit fell are about as many as half the memory can hold.
    for name in ("down", "down_refilled"):
        assert 0.4 <= row[f"items_{name}"] / row["items_full"] <= 0.6, row
    assert row["items_up"] >= row["items_full"] * 1.4, row
