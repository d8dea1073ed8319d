# SPDX-License-Identifier: Apache-2.0
"""Servers that are reached by active messages, through a bridge that sockets' clients connect to."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
from pathlib import Path

import pytest

from harness.exchange import ask
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.programs import find_program
from harness.servers import Server, ServerError, free_port, start_server



def require_ucx() -> None:
    """Skips the test where the server is built without UCX."""
    # The simulated GPU's program starts the one that this variable names.
    program = os.environ.get("SIMT_WARPCACHED", require_target("warpcached").path)
    if not Path(program).with_name("warpcached-ucx.so").exists():
        pytest.skip("the server is built without UCX")


def environment(transports: str) -> dict[str, str]:
    """`shm` is UCX's own choice between processes of one machine; else a list of its transports."""
    return {"UCX_LOG_FILE": "stderr", **({"UCX_TLS": transports} if transports != "shm" else {})}


def find_ucx_program(name: str) -> Path:
    """A client of active messages, of the same build as the server."""
    program = find_program(name, f"WARPCACHE_{name.upper()}")
    if program is None and "SIMT_WARPCACHED" in os.environ:
        program = Path(os.environ["SIMT_WARPCACHED"]).with_name(name)
    assert program is not None, f"there is no program {name}"
    return program


class Bridge:
    """A process that carries each connection to its port over an endpoint to 127.0.0.1:`port`."""

    def __init__(self, port: int, transports: str):
        self.process = subprocess.Popen(
            [find_ucx_program("ucx_bridge"), "127.0.0.1", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment(transports)},
        )
        try:
            self.port = int(self.process.stdout.readline())
        except ValueError:
            self.kill()
            raise

    def kill(self) -> None:
        """Ends it without a word to the server, and all its endpoints with it."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()


class UcxServer:
    """A server with sockets (`sockets`) and active messages (`server`, through `bridge`)."""

    def __init__(self, *options: str, transports: str = "shm", **keywords):
        require_ucx()
        self.transports = transports
        env = {**environment(transports), **keywords.pop("env", {})}
        self.sockets = self.start(options, env=env, **keywords)
        try:
            self.bridge = Bridge(self.ucx_port, transports)
        except BaseException:
            self.sockets.stop()
            raise
        self.server = self.reached_by(self.bridge)

    def start(self, options: tuple[str, ...], **keywords) -> Server:
        """Another process may take the free port of messages before the server does: then once more."""
        for is_last in (False, False, True):
            self.ucx_port = free_port()
            address = f"127.0.0.1:{self.ucx_port}"
            try:
                return start_server(require_target("warpcached"), (f"--ucx={address}", *options), **keywords)
            except ServerError as error:
                if is_last or f"--ucx={address}: the address is in use" not in str(error):
                    raise
        raise AssertionError

    def reached_by(self, bridge: Bridge) -> Server:
        return dataclasses.replace(self.sockets, host="127.0.0.1", port=bridge.port, socket_path=None)

    def stats(self, sock: socket.socket | None = None) -> dict[str, str]:
        """Asks by sockets, by a new connection unless one is given."""
        with contextlib.nullcontext(sock) if sock else self.sockets.connect() as asked:
            text = ask(asked, b"stats\r\n", b"END\r\n")
        return dict(line.split(" ", 2)[1:] for line in text.decode().split("\r\n") if line.startswith("STAT "))

    def stop(self) -> int:
        self.bridge.kill()
        return self.sockets.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.stop() == 0, "the server did not end well"
