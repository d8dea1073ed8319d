# SPDX-License-Identifier: Apache-2.0
"""Starting and ending servers under test.

A `Target` names a program that speaks memcached's command line; a `Server` is one running
process of it, listening on loopback only. Processes are ended by their own pid.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .patience import PATIENCE_S

REPO_ROOT = Path(__file__).resolve().parents[2]


class ServerError(Exception):
    """The program could not be started, or did not listen in time."""


@dataclass(frozen=True)
class Target:
    """A server program: `warpcached` (the product) or `memcached` (the reference)."""

    name: str
    path: str

    def missing(self) -> str | None:
        """Why the program cannot be run, or None."""
        if shutil.which(self.path) is None:
            return f"{self.name}: no executable at {self.path!r} (set {self.name.upper()}=path)"
        return None


def find_target(name: str) -> Target:
    """The target's program: $WARPCACHED or the release build; $MEMCACHED or the system's."""
    if name == "warpcached":
        default = str(REPO_ROOT / "build" / "release" / "warpcached")
        return Target(name, os.environ.get("WARPCACHED", default))
    if name == "memcached":
        return Target(name, os.environ.get("MEMCACHED", "memcached"))
    raise ValueError(f"unknown target {name!r}")


@functools.cache
def is_sanitized(path: str) -> bool:
    """Whether the program carries a sanitizer, which occupies memory of its own."""
    text = Path(path).read_bytes()
    return b"__asan_init" in text or b"__tsan_init" in text


def free_port(family: int = socket.AF_INET) -> int:
    """A port that is free for both TCP and UDP on loopback at the time of asking."""
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    for _ in range(100):
        with socket.socket(family, socket.SOCK_STREAM) as tcp:
            tcp.bind((host, 0))
            port = tcp.getsockname()[1]
            with socket.socket(family, socket.SOCK_DGRAM) as udp:
                try:
                    udp.bind((host, port))
                except OSError:
                    continue
                return port
    raise ServerError("no free port on loopback")


@dataclass
class Server:
    """One running server process. Owner must call stop()."""

    target: Target
    process: subprocess.Popen
    log_path: Path
    family: int = socket.AF_INET
    host: str = "127.0.0.1"
    port: int | None = None
    socket_path: str | None = None
    directory: tempfile.TemporaryDirectory | None = None
    command: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def connect(self, timeout_s: float = PATIENCE_S) -> socket.socket:
        """A new stream connection."""
        if self.socket_path is not None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout_s)
            sock.connect(self.socket_path)
            return sock
        sock = socket.create_connection((self.host, self.port), timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def connect_udp(self) -> socket.socket:
        sock = socket.socket(self.family, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sock.connect((self.host, self.port))
        return sock

    def wait_exit(self, timeout_s: float = PATIENCE_S) -> int:
        """Waits until the process has ended by itself; its exit status."""
        return self.process.wait(timeout_s)

    def ask_to_stop(self) -> None:
        """Sends the signal that ends the process, without waiting for it."""
        if self.alive():
            # The reference takes about a second to end tidily, which proves nothing here.
            polite = self.target.name != "memcached"
            self.process.send_signal(signal.SIGTERM if polite else signal.SIGKILL)

    def stop(self) -> int:
        """Ends the process (SIGTERM, then SIGKILL) and removes its files; its exit status."""
        if self.alive():
            self.ask_to_stop()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.directory is not None:
            self.directory.cleanup()
            self.directory = None
        return self.process.returncode


_started: list[Server] = []


def stop_servers_of_failed_tests() -> None:
    """Ends the servers of this process that are still there: each test ends its own, but where it fails before."""
    for server in _started:
        server.stop()
    _started.clear()


def start_server(
    target: Target,
    options: list[str] | tuple[str, ...] = (),
    *,
    unix: bool = False,
    ipv6: bool = False,
    udp: bool = False,
    env: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
) -> Server:
    """Starts `target` on a free loopback port (or a Unix socket) and waits until it listens.

    `files` are written into the server's own folder first; `{file:NAME}` in an option or an
    environment value becomes the path, `{dir}` the folder.
    """
    directory = tempfile.TemporaryDirectory(prefix="warpcache-test-")
    root = Path(directory.name)
    root.chmod(0o755)
    for name, text in (files or {}).items():
        (root / name).write_text(text)

    def fill(text: str) -> str:
        for name in files or {}:
            text = text.replace("{file:%s}" % name, str(root / name))
        return text.replace("{dir}", str(root))

    last_error = ""
    for _ in range(3):  # Another process may take the free port before the bind.
        command = [target.path]
        if os.geteuid() == 0:
            command += ["-u", "root"]
        family, host, port, socket_path = socket.AF_INET, "127.0.0.1", None, None
        if unix:
            socket_path = str(root / "sock")
            command += ["-s", socket_path]
        else:
            if ipv6:
                family, host = socket.AF_INET6, "::1"
            port = free_port(family)
            command += ["-l", host, "-p", str(port)]
            if udp:
                command += ["-U", str(port)]
                if target.name == "memcached":
                    # Of its threads one may still hold the item that another's datagram changes: what decr
                    # leaves of a longer number then differs.
                    command += ["-t", "1"]
        command += [fill(option) for option in options]
        log_path = root / "log"
        with open(log_path, "wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **{k: fill(v) for k, v in (env or {}).items()}},
            )
        server = Server(
            target, process, log_path, family, host, port, socket_path, directory, command
        )
        if _wait_listening(server):
            _started[:] = [other for other in _started if other.alive()] + [server]
            return server
        last_error = (
            f"{' '.join(command)}: "
            + ("did not listen in time" if server.alive() else f"exit {process.returncode}")
            + f"\n{server.log()[-4000:]}"
        )
        if server.alive():
            break
    server.stop()
    raise ServerError(last_error)


def _wait_listening(server: Server) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not server.alive():
            return False
        try:
            server.connect().close()
            return True
        except OSError:
            time.sleep(0.01)
    return False
