# SPDX-License-Identifier: Apache-2.0
"""./run starts a server that answers; ./run and ./test explain themselves."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import pytest
from source_tree import REPO_ROOT

# ./run first brings the release build up to date, which may be all of it.
RUN_TIME_S_MAX = 900.0
RELEASE_SERVER = REPO_ROOT / "build" / "release" / "warpcached"
PORTS_MAX = 5  # that are tried, since another process may take a free one first


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


def wait_for_line(log: Path, text: str, process: subprocess.Popen) -> bool:
    """Waits until the log has the text. False: the process has ended, or it takes too long."""
    deadline = time.monotonic() + RUN_TIME_S_MAX
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        if text in log.read_text():
            return True
        if ended:
            return False
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("script", ["./run", "./test"])
def test_help(script):
    result = call(script, "--help")
    assert result.returncode == 0 and result.stdout.startswith(f"Usage: {script}")


@pytest.mark.parametrize("script", ["./run", "./test"])
def test_unknown_option_is_refused(script):
    result = call(script, "--no-such-option")
    assert result.returncode == 2 and "--no-such-option" in result.stderr


def serve_once(port: int, log: Path) -> bool:
    """Whether ./run's server answers at this port and ends. False: another process has the port."""
    command = ["./run", "--", "-l", "127.0.0.1", "-p", str(port), "-u", "nobody"]
    with open(log, "w") as output:
        process = subprocess.Popen(command, cwd=REPO_ROOT, stdout=output, stderr=subprocess.STDOUT)
    try:
        listens = wait_for_line(log, "listening", process)
        if not listens and "Address already in use" in log.read_text():
            return False
        assert listens, log.read_text()
        assert version_reply(port, process).startswith(b"VERSION ")
        process.terminate()
        assert process.wait(timeout=RUN_TIME_S_MAX) == 0
        return True
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_run_starts_the_server(tmp_path):
    if not RELEASE_SERVER.exists():
        pytest.skip("no release build (./run --build)")
    assert any(serve_once(free_port(), tmp_path / "log") for _ in range(PORTS_MAX))


def test_run_demo_puts_the_server_under_load():
    if not (RELEASE_SERVER.parent / "warpcache-load").exists():
        pytest.skip("no release build with the load generator (./run --demo)")
    result = call("./run", "--demo", "--", "-m", "64")
    assert result.returncode == 0, result.stderr
    assert "hits 100.00%" in result.stdout and "server " in result.stdout
