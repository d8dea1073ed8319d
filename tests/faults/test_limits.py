# SPDX-License-Identifier: Apache-2.0
"""Connections, descriptors, memory and the log's disk run out, and come back."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import subprocess
import time

import pytest
from harness.exchange import ask, receive_all
from harness.patience import PATIENCE_S
from harness.servers import free_port

from faults.hostile import say_and_listen
from faults.support import (
    MIB,
    allowed_mib,
    ask_once,
    bystander,
    check_memory,
    connections,
    cpu_seconds,
    descriptor_count,
    eventually,
    fetch,
    is_sanitized,
    pattern,
    reset,
    stats,
)

TOO_MANY = b"ERROR Too many open connections\r\n"
CONNECTIONS = 100
LONG = "WARPCACHE_LONG_TESTS" in os.environ


def try_connection(server) -> socket.socket | None:
    """A connection that is served, or None."""
    sock = server.connect()
    try:
        sock.sendall(b"mn\r\n")
        if sock.recv(100) == b"MN\r\n":
            return sock
    except OSError:
        pass
    sock.close()
    return None


def test_flood_past_the_connection_limit(start_server):
    server = start_server("-c", str(CONNECTIONS), "-t", "2")
    idle = descriptor_count(server)
    with bystander(server), server.connect() as watcher:
        for _ in range(3):
            # Not by a connection of its own, which might find the limit still reached.
            assert eventually(
                lambda: b"STAT curr_connections 5\r\n" in ask(watcher, b"stats\r\n", b"END\r\n")
            )
            flood = [server.connect() for _ in range(4 * CONNECTIONS)]
            served, refused = [], 0
            for sock in flood:
                try:
                    sock.sendall(b"mn\r\n")
                    reply = sock.recv(100)
                except OSError:
                    reply = b""
                if reply == b"MN\r\n":
                    served.append(sock)
                else:
                    assert reply in (TOO_MANY, b""), reply
                    refused += 1
            assert len(served) == CONNECTIONS - 5, "the bystander has four, the watcher one"
            assert descriptor_count(server) <= idle + CONNECTIONS + 10
            assert all(ask(sock, b"mn\r\n") == b"MN\r\n" for sock in served)
            for sock in flood:
                sock.close()
    assert eventually(lambda: connections(server) == 0)
    assert int(stats(server)["rejected_connections"]) == 3 * (3 * CONNECTIONS + 5)


def test_flood_that_waits_for_its_turn(start_server):
    """With no_maxconns_fast those above the limit wait, and are served as places become free."""
    server = start_server("-c", "20", "-t", "2", "-o", "no_maxconns_fast")
    socks = [server.connect(PATIENCE_S) for _ in range(80)]
    for sock in socks:
        sock.sendall(b"mn\r\n")
    try:
        for done, sock in enumerate(socks):
            assert sock.recv(100) == b"MN\r\n", done
            sock.close()
    finally:
        for sock in socks:
            sock.close()
    with bystander(server):
        pass


def test_connections_that_come_and_go(server):
    """Thousands of connections, most of them gone before they are accepted."""
    with bystander(server):
        for i in range(2000):
            sock = server.connect()
            if i % 3 == 0:
                sock.sendall(b"get x\r\n")
            if i % 2:
                reset(sock)
            else:
                sock.close()
        assert eventually(lambda: connections(server) == 4)
    check_memory(server, allowed_mib(64, busy=100))


def test_silent_connections_fill_the_limit(start_server):
    """Those who connect and never say a word are closed where idle_timeout is set."""
    server = start_server("-c", "50", "-t", "2", "-o", "idle_timeout=1")
    # The server stands still meanwhile: none is closed before the last has come, however long that takes.
    os.kill(server.pid, signal.SIGSTOP)
    try:
        silent = [server.connect(PATIENCE_S) for _ in range(60)]
    finally:
        os.kill(server.pid, signal.SIGCONT)
    replies = [receive_all(sock) for sock in silent]
    assert set(replies) <= {b"", TOO_MANY} and replies[-1] == TOO_MANY, replies
    for sock in silent:
        sock.close()
    assert eventually(lambda: (sock := try_connection(server)) and not sock.close())


def cpu_seconds_of(server, seconds: float) -> float:
    """CPU time that it takes in the next `seconds`."""
    used = cpu_seconds(server)
    time.sleep(seconds)
    return cpu_seconds(server) - used


def test_descriptors_run_out_and_come_back(start_server):
    """Who cannot be accepted waits; who is there is served; nothing spins; later all is well."""
    server = start_server("-t", "2")
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    with bystander(server):
        room = 10
        busy = cpu_seconds_of(server, 0.5)  # an engine that looks for its answers takes some
        numbers = [int(name) for name in os.listdir(f"/proc/{server.pid}/fd")]
        low = (max(numbers) + 1 + room, limits[1])
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, low)
        socks = [server.connect() for _ in range(60)]
        for sock in socks:
            sock.sendall(b"mn\r\n")
        waiting = socks[:]
        while answered := select.select(waiting, [], [], 1.0)[0]:
            for sock in answered:
                assert sock.recv(100) == b"MN\r\n"
                waiting.remove(sock)
        assert len(waiting) >= 60 - 2 * room - 10, "descriptors did not run out: nothing is tested"
        assert cpu_seconds_of(server, 0.5) < busy + 0.25, "it spins"
        # Places that become free are taken by those who wait.
        for sock in [sock for sock in socks if sock not in waiting][:5]:
            sock.close()
        served = 0
        for sock in waiting[:5]:
            sock.settimeout(PATIENCE_S)
            served += sock.recv(100) == b"MN\r\n"
        assert served == 5
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        for sock in waiting[5:]:
            sock.settimeout(PATIENCE_S)
            assert sock.recv(100) == b"MN\r\n"
        for sock in socks:
            sock.close()


def run_server(target, *options: str, before=None, **keywords) -> subprocess.Popen:
    user = ["-u", "root"] if os.geteuid() == 0 else []
    return subprocess.Popen(
        [target.path, *user, "-l", "127.0.0.1", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=before,
        **keywords,
    )


def port_answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as sock:
            return ask(sock, b"mn\r\n") == b"MN\r\n"
    except OSError:
        return False


def start_and_end(target, *options: str, before=None) -> tuple[bool, int, str]:
    """Whether it served, its exit status, and what it said."""
    port = free_port()
    process = run_server(target, "-p", str(port), *options, before=before)
    try:
        served = False

        def settled() -> bool:
            nonlocal served
            served = port_answers(port)
            return served or process.poll() is not None

        assert eventually(settled, PATIENCE_S), "neither served nor gave up"
        if served:
            process.terminate()
        text = process.communicate(timeout=PATIENCE_S)[0]
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return served, process.returncode, text


@pytest.mark.parametrize("value", ["0", "99999999999999999999", "100000000", "16777217", "1e9"])
def test_memory_that_cannot_be(target, value):
    served, status, text = start_and_end(target, "-m", value)
    assert not served and status > 0
    assert f'-m does not accept "{value}"' in text and "Sanitizer" not in text


def test_more_memory_than_the_machine_has(target):
    """It may be meant (a test, overcommitment): it starts, and says what will happen.

    Memory that a GPU reaches cannot be reserved without use: then the server reports how much is missing."""
    if is_sanitized(target.path):
        pytest.skip("the sanitizers occupy the address space")
    megabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
    served, status, text = start_and_end(target, "-m", str(megabytes * 3))
    if "--engine=cuda: the system does not give" in text:
        assert not served and status > 0
        assert "megabytes of pinned memory" in text and f"-m {megabytes * 3}" in text
    else:
        assert (served, status) == (True, 0), text
        assert f"-m {megabytes * 3}: the machine has {megabytes} megabytes" in text
    served, status, text = start_and_end(target, "-m", "64")
    assert (served, status) == (True, 0) and "the machine has" not in text, text


def can_be_loaded(target, limit: tuple[int, int]) -> bool:
    """Whether the program itself, without a server's memory, fits into such an address space."""
    version = subprocess.run(
        [target.path, "--version"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    return version.returncode == 0


def test_more_memory_than_the_system_gives(target, start_server):
    """With little address space it starts, or says why not: it never dies of it."""
    if is_sanitized(target.path):
        pytest.skip("the sanitizers occupy the address space")
    with open(f"/proc/{start_server('-m', '128', '-t', '2').pid}/status") as status:
        (peak_kib,) = (int(line.split()[1]) for line in status if line.startswith("VmPeak"))
    outcomes = set()
    for megabytes in (*range(16, 320, 8), 400, 600, 1200, peak_kib * 5 // 4096):
        limit = (megabytes * MIB, megabytes * MIB)
        if not can_be_loaded(target, limit):
            continue
        served, status, text = start_and_end(
            target,
            "-m",
            "128",
            "-t",
            "2",
            before=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, limit),
        )
        assert status >= 0, f"{megabytes} MB of address space: signal {-status}\n{text}"
        assert status != 0 or served
        assert served or len(text) > 20, f"{megabytes}: no reason given"
        outcomes.add(served)
    assert outcomes == {True, False}, "the limits were chosen so that both happen"


def test_more_connections_than_there_can_be_descriptors(target):
    served, status, text = start_and_end(target, "-c", "2000000000")
    assert not served and status > 0
    assert "-c" in text


def test_memory_runs_out_while_running(start_server):
    """-M: errors in words, in step, for small and large; reading and deleting go on; room returns."""
    server = start_server("-m", "16", "-M", "-t", "2")
    out = b"SERVER_ERROR out of memory storing object\r\n"
    with server.connect(PATIENCE_S) as sock:
        kept = 0
        value = pattern(1, 8000)
        while True:
            request = b"set f%d 0 0 8000\r\n%s\r\n" % (kept, value)
            reply = ask(sock, request)
            if reply == out:
                break
            assert reply == b"STORED\r\n"
            kept += 1
        assert kept > 1000
        for size in (8000, 30_000, 200_000, 1_000_000):
            request = b"set big 0 0 %d\r\n%s\r\nmn\r\n" % (size, pattern(2, size))
            reply = ask(sock, request, b"MN\r\n")
            assert reply in (out + b"MN\r\n", b"STORED\r\nMN\r\n"), (size, reply)
            sock.sendall(b"ms big %d\r\n%s\r\nmn\r\n" % (size, pattern(2, size)))
            reply = b""
            while not reply.endswith(b"MN\r\n"):
                reply += sock.recv(1000)
            assert reply in (out + b"MN\r\n", b"HD\r\nMN\r\n"), (size, reply)
        # A hundred clients at once run into it.
        others = [server.connect(PATIENCE_S) for _ in range(100)]
        for i, other in enumerate(others):
            other.sendall(b"set x%d 0 0 300000\r\n%s\r\n" % (i, pattern(i, 300_000)))
        for other in others:
            assert other.recv(100) in (out, b"STORED\r\n")
            other.close()
        for i in range(0, kept, 7):
            assert fetch(sock, b"f%d" % i) == value, i
        for i in range(0, kept, 2):
            assert ask(sock, b"delete f%d\r\n" % i) == b"DELETED\r\n"
        stored = sum(
            ask(sock, b"set again%d 0 0 8000\r\n%s\r\n" % (i, value)) == b"STORED\r\n"
            for i in range(kept // 2)
        )
        assert stored > kept // 4
        assert int(stats(server)["evictions"]) == 0
    check_memory(server, allowed_mib(16, busy=110))


def is_of_dump(line: bytes) -> bool:
    return line == b"OK" or line.startswith((b"key=", b"ITEM ", b"mg "))


# A dump for which there is no memory goes on slowly: the C library asks the system once for each of its lines.
DUMPED_ITEMS = 200_000 if LONG else 20_000


@pytest.mark.parametrize("room_mib", [0, 0.1, 0.25, 1, 8] if LONG else [0, 0.25, 8])
def test_system_refuses_memory_while_running(start_server, closing, room_mib):
    """Who asks for what takes memory is told, or closed; what is stored, and the others, stay."""
    server = start_server("-m", "64", "-t", "2", "-c", "2000")
    if is_sanitized(server.target.path):
        pytest.skip("the sanitizers end a program that is refused memory")
    value = pattern(5, 100)
    with server.connect(PATIENCE_S) as sock:
        for first in range(0, DUMPED_ITEMS, 1000):
            numbers = range(first, first + 1000)
            sock.sendall(b"".join(b"set m%d 0 0 100 noreply\r\n%s\r\n" % (i, value) for i in numbers))
        assert ask(sock, b"mn\r\n") == b"MN\r\n"
    limits = resource.prlimit(server.pid, resource.RLIMIT_DATA)
    with open(f"/proc/{server.pid}/status") as status:
        (used_kib,) = (int(line.split()[1]) for line in status if line.startswith("VmData"))
    enough = used_kib * 1024 + int(room_mib * MIB)
    out = b"SERVER_ERROR out of memory"

    def refusals() -> int:
        numbers = stats(server)
        return sum(int(numbers[name]) for name in ("response_obj_oom", "read_buf_oom", "connections_refused"))

    def is_busy_or_refused() -> bool:
        """The server has come to what the clients sent; it may refuse the one that asks."""
        try:
            return refusals() > 0 or connections(server) > 500
        except (OSError, KeyError, ValueError):
            return True

    with bystander(server):
        resource.prlimit(server.pid, resource.RLIMIT_DATA, (enough, limits[1]))
        refused = 0
        for request in (b"lru_crawler metadump all", b"stats cachedump 1 0", b"lru_crawler mgdump all"):
            reply = say_and_listen(server, request + b"\r\n")
            whole = reply.endswith((b"END\r\n", b"EN\r\n"))
            # A dump for which memory runs out in the middle ends with the connection.
            lines = reply.splitlines()[:-1]
            assert whole or reply.startswith(out) or all(is_of_dump(line) for line in lines), reply[-300:]
            refused += not whole
        for i in range(1000):  # connections, halves of requests, and replies that nobody reads
            sock = server.connect()
            closing.append(sock)
            request = b"get" + b" m%d" % i * 2000 + b"\r\n" if i % 5 else b"set h 0 0 60000\r\n" + bytes(40_000)
            try:
                sock.sendall(request)
            except OSError:
                pass  # refused, or cut off
        assert refused or eventually(is_busy_or_refused)
    for sock in closing:
        reset(sock)
    closing.clear()
    resource.prlimit(server.pid, resource.RLIMIT_DATA, limits)
    assert eventually(lambda: connections(server) == 0)
    refused += refusals()
    assert refused, "memory did not run out: nothing is tested"
    with server.connect(PATIENCE_S) as sock:
        found = sum(fetch(sock, b"m%d" % i) == value for i in range(0, DUMPED_ITEMS, 100))
    assert found == DUMPED_ITEMS // 100


LOGS = {
    "stderr full": "2>/dev/full",
    "both full": ">/dev/full 2>/dev/full",
    "stderr closed": "2>&-",
    "stdout closed": ">&-",
    "all closed": "<&- >&- 2>&-",
    "reader gone": "2>&1 | true",
}


@pytest.mark.parametrize("where", LOGS.values(), ids=LOGS.keys())
def test_log_that_cannot_be_written(target, where, tmp_path):
    """Nobody can read the log, and nothing else is wrong: no reply is spoilt by it either."""
    port = free_port()
    user = ["-u", "root"] if os.geteuid() == 0 else []
    pid_path = tmp_path / "pid"
    # The inner shell tells its pid, and becomes the server.
    script = f"""sh -c 'echo $$ >"$0"; exec "$@"' "$0" "$@" {where}"""
    shell = subprocess.Popen(
        ["sh", "-c", script, str(pid_path), target.path, *user]
        + ["-l", "127.0.0.1", "-p", str(port), "-U", str(port), "-t", "2", "-vvv"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert eventually(lambda: pid_path.exists() and pid_path.read_text().strip())
    pid = int(pid_path.read_text())
    try:
        assert eventually(lambda: port_answers(port), PATIENCE_S)
        socks = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(30)]
        for _ in range(20):
            for sock in socks:
                assert ask(sock, b"bogus\r\n") == b"ERROR\r\n"
                assert ask(sock, b"get a\r\n") == b"END\r\n"
        assert ask(socks[0], b"verbosity 3\r\n") == b"OK\r\n"
        for number in (0, 1, 2):
            assert "socket" not in os.readlink(f"/proc/{pid}/fd/{number}"), "the log goes to a client"
            assert "anon_inode" not in os.readlink(f"/proc/{pid}/fd/{number}")
        for sock in socks:
            sock.sendall(b"set a 0 0 -1\r\n")
            assert sock.recv(100).startswith(b"CLIENT_ERROR")
            sock.settimeout(0.01)
            with pytest.raises(TimeoutError):
                sock.recv(100)
            sock.close()
    finally:
        os.kill(pid, 15)
        shell.wait(PATIENCE_S)
    if "|" not in where:
        assert shell.returncode == 0
    assert not port_answers(port)


def test_log_whose_reader_does_not_read(target):
    """A pipe that fills up must not stop the server from answering."""
    port = free_port()
    process = run_server(target, "-p", str(port), "-t", "2", "-vvv")
    try:
        assert eventually(lambda: port_answers(port), PATIENCE_S)
        with socket.create_connection(("127.0.0.1", port), 60) as sock:
            for i in range(300):
                sock.sendall(b"set k%d 0 0 3\r\nabc\r\nbogus %d\r\nget k\r\n" % (i, i) * 10)
            sock.sendall(b"mn\r\n")
            reply = b""
            while not reply.endswith(b"MN\r\n"):
                data = sock.recv(1 << 16)
                assert data
                reply = (reply + data)[-100:]
        for _ in range(500):
            assert port_answers(port)
    finally:
        process.terminate()
        text = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0, text[-2000:]


def test_pid_file_on_a_full_disk(target):
    """What cannot be written at the start is said, and keeps nobody from being served."""
    served, status, text = start_and_end(target, "-P", "/dev/full/pid")
    assert served and status == 0
    assert "-P" in text and "/dev/full/pid" in text


def test_port_file_that_cannot_be_written(target, monkeypatch):
    monkeypatch.setenv("MEMCACHED_PORT_FILENAME", "/proc/nowhere/ports")
    served, status, text = start_and_end(target)
    assert served and status == 0
    assert "/proc/nowhere/ports" in text


def test_port_that_is_taken(target):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = run_server(target, "-p", str(taken.getsockname()[1]))
        text = process.communicate(timeout=PATIENCE_S)[0]
        assert process.returncode > 0
        assert str(taken.getsockname()[1]) in text


def test_large_store_refused_by_item_limit(server):
    """-I 1m: a body of gigabytes is swallowed or cut off, and costs no memory."""
    with bystander(server), server.connect(PATIENCE_S) as sock:
        sock.sendall(b"set huge 0 0 200000000\r\n")
        piece = bytes(MIB)
        try:
            for _ in range(190):
                sock.sendall(piece)
        except OSError:
            pass
        else:
            sock.sendall(bytes(200_000_000 - 190 * MIB) + b"\r\n")
            assert sock.recv(100) == b"SERVER_ERROR object too large for cache\r\n"
            assert ask(sock, b"mn\r\n") == b"MN\r\n"
    assert ask_once(server, b"get huge\r\n") == b"END\r\n"
    check_memory(server, allowed_mib(64, busy=10))
