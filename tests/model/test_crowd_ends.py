# SPDX-License-Identifier: Apache-2.0
"""Crowds of run_model that are ended, or whose server is: what is told, and that nothing is left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from harness.fixtures import require_target
from harness.patience import PATIENCE_S

NEVER = str(10**12)  # messages
# Between run_model and a server: the first stream, on which it asks for its clock. A signal comes with each question, before the answer.
SIGNALS_WITH_QUESTIONS = """#!/usr/bin/env python3
import os, signal, socket, subprocess, sys, threading, time

path = sys.argv[sys.argv.index("-s") + 1]
with open({ids!r}, "a") as ids:
    ids.write(str(os.getpid()) + "\\n")
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
options = [word + ".direct" if word == path else word for word in sys.argv[1:]]
lead = ["setpriv", "--pdeathsig", "KILL"]
subprocess.Popen([*lead, {target!r}, *options, "-u", "root"])
server = socket.socket(socket.AF_UNIX)
while server.connect_ex(path + ".direct"):
    time.sleep(0.001)
listener.listen()
runner = listener.accept()[0]


def answer():
    while answers := server.recv(65536):
        runner.sendall(answers)


threading.Thread(target=answer, daemon=True).start()
while question := runner.recv(65536):
    time.sleep(0.01)
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(0.01)
    server.sendall(question)
"""


class Run:
    """run_model with crowds that do not end by themselves. Each of its servers writes its process id into a file."""

    def __init__(self, folder: Path, options: tuple[str, ...] = (), between: str = ""):
        """`options` are those of the servers. `between`: a program instead, which starts the server."""
        target = require_target("warpcached").path
        self.ids = folder / "ids"
        self.ids.touch()
        script = folder / "warpcached"
        words = f'#!/bin/bash\necho $$ >>{self.ids}\nexec {target} "$@" {" ".join(("-u", "root", *options))}\n'
        script.write_text(between.format(ids=str(self.ids), target=str(target)) if between else words)
        script.chmod(0o755)
        self.temporary = Path(tempfile.mkdtemp(prefix="warpcache-test-"))  # paths of sockets are short
        program = Path(target).resolve().parent / "run_model"
        command = [program, "--crowd", "4", "--rounds", "30", "--total", NEVER, "--first", "1", "--server", script]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )

    def servers(self) -> list[int]:
        return [int(line) for line in self.ids.read_text().splitlines()]

    def wait_for_servers(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.servers()) < count:
            assert self.process.poll() is None and time.monotonic() < deadline, "no server begins"
            time.sleep(0.01)

    def playing(self) -> int:
        """A server that players are connected to."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert self.process.poll() is None and time.monotonic() < deadline, "no crowd plays"
            for number in self.servers()[-1:]:
                with contextlib.suppress(OSError, ValueError):
                    words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
                    path = words[words.index(b"-s") + 1].decode()
                    sockets = [line for line in Path("/proc/net/unix").read_text().splitlines() if f" {path}" in line]
                    if len(sockets) > 2:  # of that name and more: beside the listener and the stream that asks for its clock
                        return number
            time.sleep(0.001)

    def output(self) -> str:
        """All that it says, when it has ended. Then nothing of it is left."""
        said = self.process.communicate(timeout=PATIENCE_S)[0]
        assert list(self.temporary.iterdir()) == [], said
        return said

    def stop(self) -> None:
        for number in [self.process.pid, *self.servers()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        shutil.rmtree(self.temporary)


@pytest.fixture
def run(tmp_path, request):
    started = Run(tmp_path, **getattr(request, "param", {}))
    yield started
    started.stop()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_the_end_of_a_run_is_no_difference(run, number):
    """As `timeout` does it: the signal goes to all processes of the group, in any order."""
    run.wait_for_servers(2)
    run.playing()
    os.killpg(run.process.pid, number)
    output = run.output()
    assert run.process.returncode == 3, output
    assert " 0 differences" in output, output
    assert "was ended by a signal: not counted" in output or len(run.servers()) == int(output.split(" crowds")[0].split()[-1])
    assert not any(is_alive(server) for server in run.servers())


@pytest.mark.parametrize("run", [{"between": SIGNALS_WITH_QUESTIONS}], indirect=True)
def test_the_end_while_a_server_starts_is_no_difference(run):
    output = run.output()
    assert run.process.returncode == 3, output
    assert "0 crowds, 0 messages, 0 differences" in output, output


def test_a_server_that_goes_is_told(run):
    os.kill(run.playing(), signal.SIGKILL)
    output = run.output()
    assert run.process.returncode == 1, output
    # A killed process's sockets end before it can be waited for: the runner may look in between.
    gone = ("the server has ended by itself, status 9", "the server does not answer any more on the stream that was opened first")
    assert any(words in output for words in gone), output
    assert "the stream has ended before all was answered" in output, output


@pytest.mark.parametrize("run", [{"options": ("-I", "20k")}], indirect=True)
def test_the_end_while_a_script_is_played_again(run):
    """A server with a smaller `-I` than the model knows of differs; the scripts that show it are played until they are short."""
    run.wait_for_servers(3)  # of the crowd, and of two replays
    run.process.terminate()
    run.output()
    assert run.process.returncode == 1
