# SPDX-License-Identifier: Apache-2.0
"""./run starts a server that answers; ./run and ./test explain themselves."""

from __future__ import annotations

import socket
import subprocess
import time

import pytest
from source_tree import REPO_ROOT

# ./run first brings the release build up to date, which may be all of it.
RUN_TIME_S_MAX = 900.0
RELEASE_SERVER = REPO_ROOT / "build" / "release" / "warpcached"


def call(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, cwd=REPO_ROOT, capture_output=True, text=True, timeout=RUN_TIME_S_MAX
    )


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def version_reply(port: int, process: subprocess.Popen) -> bytes:
    """The reply to `version`, asked until the server listens or has ended."""
    deadline = time.monotonic() + RUN_TIME_S_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1.0) as sock:
                sock.sendall(b"version\r\n")
                return sock.recv(100)
        except ConnectionRefusedError:
            time.sleep(0.05)
    return b""


@pytest.mark.parametrize("script", ["./run", "./test"])
def test_help(script):
    result = call(script, "--help")
    assert result.returncode == 0 and result.stdout.startswith(f"Usage: {script}")


@pytest.mark.parametrize("script", ["./run", "./test"])
def test_unknown_option_is_refused(script):
    result = call(script, "--no-such-option")
    assert result.returncode == 2 and "--no-such-option" in result.stderr


def test_run_starts_the_server():
    if not RELEASE_SERVER.exists():
        pytest.skip("no release build (./run --build)")
    port = free_port()
    command = ["./run", "--", "-l", "127.0.0.1", "-p", str(port), "-u", "nobody"]
    process = subprocess.Popen(command, cwd=REPO_ROOT)
    try:
        assert version_reply(port, process).startswith(b"VERSION ")
        process.terminate()
        assert process.wait(timeout=10) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_run_demo_puts_the_server_under_load():
    if not (RELEASE_SERVER.parent / "warpcache-load").exists():
        pytest.skip("no release build with the load generator (./run --demo)")
    result = call("./run", "--demo", "--", "-m", "64")
    assert result.returncode == 0, result.stderr
    assert "hits 100.00%" in result.stdout and "server " in result.stdout
