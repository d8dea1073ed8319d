# SPDX-License-Identifier: Apache-2.0
"""Several processes and threads of real clients on the same keys, with everything verified."""

import hashlib
import multiprocessing
import random
import threading
from contextlib import closing

from pymemcache.client.base import Client, PooledClient
from harness.patience import PATIENCE_S

from clients.support import tcp

PROCESSES = 4
THREADS = 4
INCREMENTS = 3000
SWAPS = 150
SHARED_KEYS = 20
ROUNDS = 3000
CHURN_WRITES = 800


def connect(address):
    return closing(Client(address, timeout=PATIENCE_S, no_delay=True, default_noreply=False))


def in_processes(work, *arguments):
    """Runs work(number, *arguments, results) in processes; what each put into results."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=work, args=(number, *arguments, results))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    try:
        gathered = [results.get(timeout=300) for _ in processes]
    finally:
        for process in processes:
            process.join(PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    return gathered


def increment(number, address, results):
    with connect(address) as client:
        seen = [client.incr(f"counter-{turn % 3}", 1) for turn in range(INCREMENTS)]
        for _ in range(INCREMENTS):
            client.incr("quiet", 1, noreply=True)
        client.version()  # The quiet ones are done when this is answered.
    results.put(seen)


def test_increments_are_counted_exactly(server):
    with connect(tcp(server)) as client:
        for name in ("counter-0", "counter-1", "counter-2", "quiet"):
            client.set(name, b"0")
        gathered = in_processes(increment, tcp(server))
        total = PROCESSES * INCREMENTS
        for part in range(3):
            # Every increment answered another number: none was lost, none was done twice.
            numbers = sorted(value for seen in gathered for value in seen[part::3])
            assert numbers == list(range(1, total // 3 + 1))
            assert client.get(f"counter-{part}") == b"%d" % (total // 3)
        assert client.get("quiet") == b"%d" % total


def swap(number, address, results):
    refused = 0
    with connect(address) as client:
        for _ in range(SWAPS):
            while True:
                value, token = client.gets("sum")
                if client.cas("sum", b"%d" % (int(value) + 1), token):
                    break
                refused += 1
    results.put(refused)


def test_swaps_are_never_lost(server):
    with connect(tcp(server)) as client:
        client.set("sum", b"0")
        refused = in_processes(swap, tcp(server))
        assert client.get("sum") == b"%d" % (PROCESSES * SWAPS)
        stats = client.stats()
        assert stats[b"cas_hits"] == PROCESSES * SWAPS
        assert stats[b"cas_badval"] == sum(refused)


def signed(key, writer, turn, size):
    """A value that says whose it is and can be checked whole."""
    body = b"%s|%d|%d|" % (key.encode(), writer, turn) + random.randbytes(size)
    return hashlib.md5(body).digest() + body


def whole(key, value):
    return hashlib.md5(value[16:]).digest() == value[:16] and value[16:].startswith(
        key.encode() + b"|"
    )


def overwrite(number, address, results):
    random.seed(number)
    wrong, hits = [], 0
    with connect(address) as client:
        for turn in range(ROUNDS):
            key = f"shared-{random.randrange(SHARED_KEYS)}"
            action = random.random()
            if action < 0.4:
                size = random.choice([10, 100, 1000, 5000, 20_000])
                client.set(key, signed(key, number, turn, size))
            elif action < 0.45:
                client.delete(key)
            elif action < 0.9:
                value = client.get(key)
                hits += value is not None
                if value is not None and not whole(key, value):
                    wrong.append((key, value[:80]))
            else:
                keys = [f"shared-{n}" for n in range(SHARED_KEYS)]
                for name, value in client.get_many(keys).items():
                    if not whole(name, value):
                        wrong.append((name, value[:80]))
    results.put((hits, wrong))


def test_values_are_whole_while_they_are_overwritten(server):
    gathered = in_processes(overwrite, tcp(server))
    assert [wrong for _, wrong in gathered] == [[]] * PROCESSES
    assert all(hits > ROUNDS // 10 for hits, _ in gathered)


def churn(number, address, results):
    """Writes several times the server's memory and reads back keys of all writers."""
    random.seed(number)
    wrong, hits = [], 0
    with connect(address) as client:
        for turn in range(CHURN_WRITES):
            key = f"churn-{number}-{turn}"
            size = random.choice([50, 500, 3000, 8000, 30_000, 200_000])
            if turn % 2:
                client.set(key, signed(key, number, turn, size), noreply=True)
            else:
                assert client.set(key, signed(key, number, turn, size))
            wanted = [
                f"churn-{random.randrange(PROCESSES)}-{random.randrange(turn + 1)}"
                for _ in range(4)
            ]
            for name, value in client.get_many(wanted).items():
                hits += 1
                if not whole(name, value):
                    wrong.append((name, value[:80]))
    results.put((hits, wrong))


def test_values_are_whole_while_others_are_evicted(start_server):
    server = start_server(["-m", "16"])
    gathered = in_processes(churn, tcp(server))
    assert [wrong for _, wrong in gathered] == [[]] * PROCESSES
    assert all(hits > 0 for hits, _ in gathered)
    with connect(tcp(server)) as client:
        assert client.stats()[b"evictions"] > 0


def in_threads(work):
    raised = []

    def guarded(number):
        try:
            work(number)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []


def test_appends_are_all_there_and_whole(server):
    with closing(PooledClient(tcp(server), max_pool_size=THREADS, default_noreply=False)) as client:
        client.set("log", b"")

        def work(number):
            for turn in range(200):
                assert client.append("log", b"<%d:%d>" % (number, turn))

        in_threads(work)
        log = client.get("log").decode()
        entries = log[1:-1].split("><")
        assert len(entries) == THREADS * 200
        for number in range(THREADS):
            mine = [entry for entry in entries if entry.startswith(f"{number}:")]
            assert mine == [f"{number}:{turn}" for turn in range(200)]


def test_only_one_add_wins(server):
    winners = []
    with closing(PooledClient(tcp(server), max_pool_size=THREADS, default_noreply=False)) as client:

        def work(number):
            for turn in range(300):
                if client.add(f"race-{turn}", b"%d" % number):
                    winners.append((turn, number))

        in_threads(work)
        assert sorted(turn for turn, _ in winners) == list(range(300))
        for turn, number in winners:
            assert client.get(f"race-{turn}") == b"%d" % number


def test_a_connection_reads_its_own_writes(server):
    def work(number):
        with connect(tcp(server)) as client:
            for turn in range(300):
                value = b"%d" % turn
                assert client.set(f"own-{number}", value, noreply=turn % 2 == 0)
                assert client.get(f"own-{number}") == value

    in_threads(work)
