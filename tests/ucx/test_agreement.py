# SPDX-License-Identifier: Apache-2.0
"""Answers over active messages: as memcached's, in an order with those over sockets, and whatever clients are killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest
from harness.exchange import ask
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.servers import REPO_ROOT, free_port
from harness.ucx import UcxServer, environment, find_ucx_program, require_ucx

from .test_isolation import hostile, held, wait_for

LONG = "WARPCACHE_LONG_TESTS" in os.environ
COMMANDS = 3000
MESSAGES = 10_000_000 if LONG else 10_000  # against the model: one crowd
JOBS = min(os.cpu_count() or 1, 16) if LONG else 1  # a server and a client, both of which poll
OPERATIONS = 4_000_000 if LONG else 30_000  # of the search for an order
KILLS = 1000 if LONG else 36  # two at each step
TIME_S_MAX = 24 * 3600 if LONG else 600
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


def agreement(*options: object, server: Path | None = None, program: Path = Path(__file__).with_name("agreement"), **keywords):
    """Runs the program of that name. Returns its status, and all that it says."""
    command = [program, *map(str, options)]
    if program.parent == Path(__file__).parent:
        target = server or Path(require_target("warpcached").path)
        command += ["--programs", find_ucx_program("run_model").parent, "--server", target]
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIME_S_MAX, check=False, **keywords
    )
    return result.returncode, result.stdout


@pytest.mark.long
@pytest.mark.parametrize("transport", ("shm", "tcp"))
def test_many_clients_are_answered_as_by_the_model(transport, tmp_path):
    """Each reply byte of crowds of clients in all protocols, over endpoints."""
    require_ucx()
    rows = tmp_path / "rows"
    options = ["--requests", MESSAGES, "--jobs", JOBS, "--transport", transport, "--json", rows]
    status, said = agreement(*options, "--players", 8, "--rounds", 50)
    assert status == 0, said
    row = json.loads(rows.read_text())
    assert row["requests"] >= MESSAGES and row["differences"] == 0
    assert row["transport"] == ["posix" if transport == "shm" else "tcp"]
    assert f"--requests {MESSAGES} --jobs {JOBS} --transport {transport}" in row["command"] and row["commit"] and row["machine"]
    # By messages in earnest: packed, and large bodies by rendezvous both ways.
    assert 0 < row["ucx_messages_received"] < row["requests"]
    assert row["ucx_fetched_bytes"] > 0 and row["ucx_copied_bytes"] > 0 and row["ucx_pinned_bytes"] > 0


@pytest.mark.long
@pytest.mark.parametrize("transport", ("shm", "tcp"))
def test_bugs_that_were_are_not_over_messages(transport):
    """The scripts of tests/model/regressions, each packed into messages."""
    require_ucx()
    env = {**os.environ, **environment(transport)}
    server = require_target("warpcached").path
    scripts = sorted((REPO_ROOT / "tests" / "model" / "regressions").glob("*.txt"))
    assert scripts
    for script in scripts:
        command = [find_ucx_program("run_model"), "--replay", script, "--server", server, "--ucx"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX, check=False, env=env)
        assert result.returncode == 0, script.name + result.stdout + result.stderr


@pytest.mark.long
def test_what_the_model_does_not_say_is_a_difference(tmp_path):
    """A server with a smaller `-I` than the model knows of: the run fails, says where, and records nothing."""
    require_ucx()
    server = tmp_path / "warpcached"
    server.write_text(f'#!/bin/bash\nexec {require_target("warpcached").path} "$@" -I 20k\n')
    server.chmod(0o755)
    rows = tmp_path / "rows"
    options = ["--requests", 10**9, "--jobs", 2, "--players", 4, "--rounds", 20, "--json", rows]
    status, said = agreement(*options, server=server)
    assert status == 1, said
    assert "the replies differ" in said and "FAILED" in said and not rows.exists()


def test_a_run_that_is_over_before_tells_what_it_has_compared(tmp_path):
    require_ucx()
    rows = tmp_path / "rows"
    status, said = agreement("--requests", 10**9, "--jobs", 1, "--players", 1, "--rounds", 1, "--seconds", 3, "--json", rows)
    assert status == 3, said
    if rows.exists():  # on a busy machine no crowd may have come to its end
        assert 0 < json.loads(rows.read_text())["requests"] < 10**9


@pytest.mark.parametrize("wrong", (("--requests", 0), ("--requests", 1, "--jobs", 0), ("--requests", 1, "--transport", "rdma")))
def test_wrong_options_are_refused(wrong):
    require_ucx()
    status, said = agreement(*wrong)
    assert status == 2 and "usage:" in said


@pytest.mark.skipif("SIMT_WARPCACHED" in os.environ, reason="what is packed is the CPU's server")
def test_what_is_packed_runs_elsewhere(tmp_path):
    """With its own UCX and all other libraries, where there are none and no repository."""
    require_ucx()
    folder = tmp_path / "packed"
    program = Path(__file__).with_name("agreement")
    subprocess.run([program, "pack", folder, Path(require_target("warpcached").path).parent], check=True, timeout=PATIENCE_S)
    for name in ("run_model", "warpcached", "warpcached-ucx.so"):
        env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(folder / "lib")}
        found = subprocess.run(["ldd", folder / name], capture_output=True, text=True, check=True, env=env).stdout
        others = {line.split()[0].split(".so")[0] for line in found.splitlines() if "=> /" in line and str(folder) not in line}
        assert others <= {"libc", "libm", "libdl", "libpthread", "librt"}, found
    rows = tmp_path / "rows"
    kept = {name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name or name.startswith("UCX_")}
    status, said = agreement(
        *("--requests", 500, "--jobs", 2, "--players", 2, "--rounds", 20, "--json", rows),
        program=folder / "agreement",
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **kept},
    )
    assert status == 0, said
    assert json.loads(rows.read_text())["commit"] == (folder / "commit").read_text().strip()


@pytest.mark.long
@pytest.mark.parametrize("transports", ("shm", "tcp"))
def test_clients_of_both_kinds_are_in_one_order(transports):
    """An order of each key's operations explains every reply: tests/stress/README.md."""
    with UcxServer("-m", "512", "-t", "2", transports=transports) as own:
        addresses = [f"--server=127.0.0.1:{port}" for port in (own.sockets.port, own.server.port)]
        command = [find_ucx_program("stress_run"), *addresses, "--operations", str(OPERATIONS // 2)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "all in order" in result.stdout
        stats = own.stats()
        assert int(stats["ucx_fetched_bytes"]) > 0 and int(stats["ucx_pinned_bytes"]) > 0, "no rendezvous was among them"


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
        deadline = time.monotonic() + PATIENCE_S
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
def test_clients_killed_at_every_step_of_a_rendezvous(server):
    """While others are served; afterwards nothing is held, and a value is there as a whole or not at all."""
    before = held(server)
    command = [find_ucx_program("ucx_killed"), "127.0.0.1", str(server.ucx_port)]
    env = {**os.environ, **environment(server.transports)}
    memory = 0
    with contextlib.closing(Steady(server)) as client:
        for half in range(2):
            if half == 1:
                wait_for(lambda: held(server)["ucx_endpoints"] <= before["ucx_endpoints"] + 1, "all have ended")
                memory = memory_kb(server.sockets.pid)
            victims = subprocess.Popen([*command, str(KILLS // 2), str(1 + half * KILLS)], stdout=subprocess.PIPE, text=True, env=env)
            number = 0
            while victims.poll() is None:
                time.sleep(0.005)  # the victims need the processors, too
                number += 1
                assert client.ask(b"set mine 0 0 6\r\n%06d\r\n" % number, b"\r\n") == b"STORED\r\n"
                reply = client.ask(b"get killed\r\n", b"END\r\n")
                if reply != b"END\r\n":
                    assert reply.split(b"\r\n")[1] == b"k" * (512 * 1024)
            assert victims.returncode == 0
            steps = dict(line.split() for line in victims.stdout)
            victims.stdout.close()
            assert len(steps) == 18 and sum(map(int, steps.values())) == KILLS // 2 and "0" not in steps.values()
    wait_for(lambda: held(server) == before, f"all is free, as before: {before}")
    assert server.sockets.alive()
    # What the first half has made it keep is enough for the second, but for the store's 16 MB.
    assert memory_kb(server.sockets.pid) < memory + 24 * 1024


@pytest.mark.not_on_gpu(reason="bodies lie apart from the log there")
def test_clients_killed_while_the_log_receives_their_values(server):
    """Of a segment of 1 MB values of others lie beside the victims'. They stay what they were, and nothing is held."""
    size = 300_000
    with UcxServer("-m", "1024", "-t", "1", transports=server.transports) as own:
        with own.sockets.connect() as sock:
            for key in (b"large", b"neighbour"):
                assert ask(sock, b"set %s 0 0 %d\r\n%s\r\n" % (key, size, b"l" * size), b"\r\n") == b"STORED\r\n"
        before = held(own)
        command = [find_ucx_program("ucx_killed"), "127.0.0.1", str(own.ucx_port), "36", "7", str(size)]
        env = {**os.environ, **environment(own.transports)}
        victims = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        number = 0
        with own.sockets.connect() as sock:
            while victims.poll() is None:
                time.sleep(0.01)
                number += 1
                mine = b"%06d" % number * (size // 6)
                assert ask(sock, b"set mine 0 0 %d\r\n%s\r\n" % (len(mine), mine), b"\r\n") == b"STORED\r\n"
                assert ask(sock, b"get mine\r\n", b"END\r\n").split(b"\r\n")[1] == mine
                reply = ask(sock, b"get killed\r\n", b"END\r\n")
                assert reply == b"END\r\n" or reply.split(b"\r\n")[1] == b"k" * size
            assert victims.returncode == 0, victims.stdout.read()
            victims.stdout.close()
            wait_for(lambda: held(own) == before, f"all is free, as before: {before}")
            for key in (b"large", b"neighbour"):
                assert ask(sock, b"get %s\r\n" % key, b"END\r\n").split(b"\r\n")[1] == b"l" * size
        assert own.sockets.alive()


@pytest.mark.parametrize("number", (9, 15))
def test_a_server_that_ends_is_noticed(server, number):
    """By signal 9 or 15: the clients' streams end, and none waits for ever."""
    with UcxServer(transports=server.transports) as own:
        with own.server.connect() as sock, hostile(own, "half-set") as other:
            assert ask(sock, b"get a\r\n", b"END\r\n") == b"END\r\n"
            own.sockets.process.send_signal(number)
            assert sock.recv(100) == b""
            assert other.stdout.readline().startswith("closed")
            assert own.sockets.process.wait(PATIENCE_S) == (-9 if number == 9 else 0)
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
        assert own.sockets.process.wait(PATIENCE_S) == 0
