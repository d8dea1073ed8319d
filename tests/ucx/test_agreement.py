# SPDX-License-Identifier: Apache-2.0
"""Answers over active messages: as memcached's, in an order with those over sockets, and whatever clients are killed."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.fixtures import require_target
from harness.servers import free_port
from harness.ucx import UcxServer, environment, find_ucx_program, require_ucx

from .test_isolation import hostile, held, wait_for

COMMANDS = 3000
KILLS = 50
TIME_S_MAX = 600
# Between the server that run_model starts and itself: messages instead of its Unix socket.
SCRIPT = """#!/bin/bash
# -s PATH: the bridge listens there, and the server elsewhere.
path=$2
shift 2
for port in {ports}; do  # one may have been taken meanwhile
  setpriv --pdeathsig KILL {server} -s "$path.direct" "$@" -u root --ucx=127.0.0.1:$port 2>>{log} &
  while kill -0 $! && [[ ! -S $path.direct ]]; do sleep 0.01; done
  [[ ! -S $path.direct ]] || exec {bridge} 127.0.0.1 $port "$path"
done 2>>{log}
"""


@pytest.mark.long
@pytest.mark.parametrize("protocol", ("text", "meta", "binary"))
def test_random_commands_are_answered_as_by_memcached(protocol, tmp_path):
    require_ucx()
    memcached = require_target("memcached").path
    script = tmp_path / "warpcached"
    target = Path(require_target("warpcached").path)
    log = tmp_path / "log"
    ports = " ".join(str(free_port()) for _ in range(5))
    script.write_text(SCRIPT.format(server=target, bridge=find_ucx_program("ucx_bridge"), ports=ports, log=log))
    script.chmod(0o755)
    command = [find_ucx_program("run_model"), "--compare", script, "--memcached", memcached, "--first", "1"]
    command += ["--protocol", protocol, "--commands", str(COMMANDS)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX, check=False)
    assert result.returncode == 0, result.stdout + result.stderr + log.read_text()
    assert " 0 differences that are not listed" in result.stdout


@pytest.fixture(scope="module", params=("shm", "tcp"))
def server(request):
    with UcxServer("-m", "16", "-t", "2", transports=request.param) as started:
        with started.sockets.connect() as sock:  # what hostile clients ask for
            large = b"l" * (512 * 1024)
            assert ask(sock, b"set large 0 0 %d\r\n%s\r\n" % (len(large), large), b"\r\n") == b"STORED\r\n"
        yield started


@pytest.mark.long
def test_clients_of_both_kinds_see_one_order(server):
    """A counter: each increment has its own number, and who ends before another begins has the lower one."""
    history: list[tuple[float, float, str, int]] = []
    failures = []
    with server.sockets.connect() as sock:
        assert ask(sock, b"set counter 0 0 1\r\n0\r\n", b"\r\n") == b"STORED\r\n"

    def work(reached, seed: int) -> None:
        choice = random.Random(seed)
        own = []
        try:
            with reached.connect() as sock:
                for _ in range(400):
                    begun = time.monotonic()
                    if choice.random() < 0.5:
                        number = int(ask(sock, b"incr counter 1\r\n", b"\r\n"))
                        own.append((begun, time.monotonic(), "incr", number))
                    else:
                        number = int(ask(sock, b"get counter\r\n", b"END\r\n").split(b"\r\n")[1])
                        own.append((begun, time.monotonic(), "get", number))
        except Exception as error:  # noqa: BLE001 - any failure is the test's result
            failures.append(error)
        history.extend(own)

    reaches = (server.server, server.sockets) * 3
    threads = [threading.Thread(target=work, args=(reached, seed)) for seed, reached in enumerate(reaches)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    incrs = {number: (begun, ended) for begun, ended, kind, number in history if kind == "incr"}
    assert sorted(incrs) == list(range(1, sum(kind == "incr" for *_, kind, _ in history) + 1))
    latest_begin = 0.0
    for number in sorted(incrs):  # none ends before one with a lower number begins
        latest_begin = max(latest_begin, incrs[number][0])
        assert incrs[number][1] >= latest_begin, f"increment {number} is out of order"
    for begun, ended, kind, number in history:
        if kind == "get":
            assert number == 0 or incrs[number][0] <= ended, "a number was read before it was made"
            after = incrs.get(number + 1)
            assert after is None or after[1] >= begun, "an old number was read"


class Steady:
    """A client by messages that connects again when its stream has ended: a killed client may leave half a message in
    the memory that all share, and the thread's messages then start anew. That takes some seconds."""

    def __init__(self, server: UcxServer):
        self.server = server
        self.sock = server.server.connect()

    def ask(self, request: bytes, end: bytes) -> bytes:
        deadline = time.monotonic() + 60
        while True:
            try:
                return ask(self.sock, request, end)
            except ConnectionError:
                assert time.monotonic() < deadline, "messages do not start anew"
                self.sock.close()
                time.sleep(0.05)
                self.sock = self.server.server.connect()

    def close(self) -> None:
        self.sock.close()


def memory_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise AssertionError("no RssAnon")


@pytest.mark.long
def test_clients_killed_at_any_step_of_a_rendezvous(server):
    """While others are served; afterwards nothing is held, and a value is there as a whole or not at all."""
    moment = random.Random(11)
    before = held(server)
    program = find_ucx_program("ucx_hostile")
    env = {**os.environ, **environment(server.transports)}
    memory = 0
    with contextlib.closing(Steady(server)) as client:
        for i in range(KILLS):
            if i == KILLS // 2:
                wait_for(lambda: held(server)["ucx_endpoints"] <= before["ucx_endpoints"] + 1, "all have ended")
                memory = memory_kb(server.sockets.pid)
            scenario = ("values", "set-announced", "get-announced")[i % 3]
            process = subprocess.Popen(
                [program, "127.0.0.1", str(server.ucx_port), scenario], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
            )
            if i % 2:
                process.stdout.readline()  # it has begun
            time.sleep(moment.uniform(0, 0.03))
            process.kill()
            process.wait()
            process.stdout.close()
            reply = client.ask(b"get killed\r\n", b"END\r\n")
            if reply != b"END\r\n":
                value = reply.split(b"\r\n")[1]
                assert value == value[:1] * (512 * 1024)
            assert client.ask(b"set mine 0 0 2\r\n%02d\r\n" % i, b"\r\n") == b"STORED\r\n"
    wait_for(lambda: held(server) == before, f"all is free, as before: {before}")
    assert server.sockets.alive()
    # What the first half has made it keep is enough for the second, but for the store's 16 MB.
    assert memory_kb(server.sockets.pid) < memory + 24 * 1024
    with server.sockets.connect() as sock:
        assert ask(sock, b"get hostile\r\n", b"END\r\n") == b"END\r\n"


@pytest.mark.parametrize("number", (9, 15))
def test_a_server_that_ends_is_noticed(server, number):
    """By signal 9 or 15: the clients' streams end, and none waits for ever."""
    with UcxServer(transports=server.transports) as own:
        with own.server.connect() as sock, hostile(own, "half-set") as other:
            assert ask(sock, b"get a\r\n", b"END\r\n") == b"END\r\n"
            own.sockets.process.send_signal(number)
            assert sock.recv(100) == b""
            assert other.stdout.readline().startswith("closed")
            assert own.sockets.process.wait(60) == (-9 if number == 9 else 0)
            if number == 9:
                own.sockets.process = subprocess.Popen(["true"])
                own.sockets.process.wait()  # so that the signal of stop() does not end it


def test_a_graceful_stop_answers_first(server):
    with UcxServer(transports=server.transports) as own:
        with own.server.connect() as sock:
            assert ask(sock, b"set a 0 0 1\r\nx\r\n", b"\r\n") == b"STORED\r\n"
            sock.sendall(b"set b 0 0 100\r\nhalf")
            time.sleep(0.2)
            own.sockets.process.send_signal(10)  # SIGUSR1
            time.sleep(0.2)
            sock.sendall(b"x" * 96 + b"\r\n")
            assert sock.recv(100) == b"STORED\r\n"
            assert sock.recv(100) == b""
        assert own.sockets.process.wait(60) == 0
