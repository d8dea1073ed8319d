# SPDX-License-Identifier: Apache-2.0
"""Running warpcache-load, and servers for it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import require_target

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "compare"))

from rounds import find_generator  # noqa: E402

TIME_S_MAX = 120


@dataclass(frozen=True)
class Outcome:
    status: int
    report: dict | None
    table: str
    errors: str


@pytest.fixture(scope="session")
def load():
    """Runs the generator against `server` (its argument); a report comes with every run that ends."""
    program = find_generator()
    if program is None:
        pytest.fail("warpcache-load is not built (set WARPCACHE_LOAD=path)", pytrace=False)

    def run(server: str, *arguments: str, tmp_path: Path) -> Outcome:
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        command = [str(program), server, "--json", str(report), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_S_MAX)
        found = json.loads(report.read_text()) if report.exists() else None
        return Outcome(done.returncode, found, done.stdout, done.stderr)

    return run


@pytest.fixture(params=["warpcached", "memcached"])
def target(request):
    return require_target(request.param)


@pytest.fixture
def server(target, server_pool):
    """A shared server that listens on TCP and UDP, at one port."""
    shared = server_pool.get(target, (), "udp")
    yield shared
    assert shared.alive(), shared.log()


@contextmanager
def impostor(answer):
    """A server that answers each piece of input by answer(input); None closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(sock: socket.socket) -> None:
        with sock:
            while data := sock.recv(65536):
                reply = answer(data)
                if reply is None:
                    return
                sock.sendall(reply)

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=guarded, args=(sock,), daemon=True).start()

    def guarded(sock: socket.socket) -> None:
        try:
            serve(sock)
        except OSError:
            pass  # the generator has gone

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
