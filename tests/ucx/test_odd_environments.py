# SPDX-License-Identifier: Apache-2.0
"""Clients whose environment has settings of UCX's of their own, and clients that are not ours.

Some of UCX's settings say how memory is laid out that both sides use, and UCX does not compare them: io/ucx/ucx_choice.h. Whatever a
client's are, the server goes on and answers others; the client itself is answered, or it is told that it cannot be.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

import pytest
from harness.exchange import ask
from harness.patience import PATIENCE_S
from harness.servers import ServerError
from harness.ucx import Bridge, UcxServer, environment, find_ucx_program

from .test_isolation import wait_for

# At night all of them. The value TMP is a folder of the test's.
OFTEN = (
    "POSIX_FIFO_SIZE=1024",
    "POSIX_FIFO_ELEM_SIZE=256",
    "MM_SEG_SIZE=32k",
    "POSIX_DIR=TMP POSIX_USE_PROC_LINK=n",
    "UNIFIED_MODE=y",
)
AT_NIGHT = (
    "POSIX_FIFO_SIZE=2",
    "MM_FIFO_SIZE=256",
    "POSIX_FIFO_ELEM_SIZE=64",
    "POSIX_FIFO_ELEM_SIZE=4096",
    "POSIX_SEG_SIZE=1k",
    "POSIX_SEG_SIZE=64k",
    "POSIX_DIR=TMP",
    "POSIX_USE_PROC_LINK=n",
    "POSIX_FIFO_HUGETLB=try",
    "POSIX_HUGETLB_MODE=n",
    "POSIX_FIFO_RELEASE_FACTOR=0.99",
    "POSIX_FIFO_MAX_POLL=1",
    "POSIX_RX_MAX_BUFS=128 POSIX_RX_BUFS_GROW=64",
    "POSIX_FIFO_SIZE=256 POSIX_FIFO_ELEM_SIZE=512 POSIX_SEG_SIZE=16k",
    "MM_ERROR_HANDLING=n",
    "TLS=sysv",
    "TLS=posix",
    "TLS=sm,self",
    "TLS=all",
    "PROTO_ENABLE=y",
    "ADDRESS_VERSION=v2",
    "SA_DATA_VERSION=v2",
    "PROTO_INDIRECT_ID=off",
    "RESOLVE_REMOTE_EP_ID=on",
    "ADDRESS_DEBUG_INFO=y",
    "SEG_SIZE=64k",
    "SEG_SIZE=1k",
    "RNDV_SCHEME=put_zcopy",
    "RNDV_SCHEME=rkey_ptr",
    "RNDV_FRAG_SIZE=host:4k",
    "RNDV_THRESH=0 ZCOPY_THRESH=0 BCOPY_THRESH=0",
    "MAX_EAGER_RAILS=4 MAX_RNDV_RAILS=4",
    "RX_MPOOL_SIZES=64,128,16k",
    "ALLOC_PRIO=md:posix,mmap",
    "CM_USE_ALL_DEVICES=n",
    "KEEPALIVE_INTERVAL=inf",
    "NET_DEVICES=lo",
    "TCP_CM_PRIV_DATA_LEN=65536",
    "TCP_CM_PRIV_DATA_LEN=64",
)
OFTEN_TCP = ("TCP_TX_SEG_SIZE=256k TCP_RX_SEG_SIZE=512k",)
AT_NIGHT_TCP = (
    "TCP_RX_SEG_SIZE=512k",
    "TCP_TX_SEG_SIZE=2k TCP_RX_SEG_SIZE=4k",
    "TCP_TX_SEG_SIZE=64k",
    "TCP_MAX_IOV=64",
    "TCP_SENDV_THRESH=0",
    "TCP_PUT_ENABLE=n",
    "TCP_CONN_NB=y",
    "TCP_SNDBUF=4k TCP_RCVBUF=4k",
    "UNIFIED_MODE=y",
    "PROTO_ENABLE=y",
    "SEG_SIZE=64k",
)
OFTEN_SYSV: tuple[str, ...] = ()
AT_NIGHT_SYSV = ("SYSV_FIFO_SIZE=1024", "SYSV_FIFO_ELEM_SIZE=1024", "SYSV_SEG_SIZE=64k")
# UCX connects by TCP before it goes on by shared memory: with these a client starts and has no way.
NO_WAY = ("TLS=sysv", "TLS=posix", "TLS=sm,self")
LONG = "WARPCACHE_LONG_TESTS" in os.environ
CASES = [
    (transports, odd)
    for transports, often, at_night in (
        ("shm", OFTEN, AT_NIGHT),
        ("tcp", OFTEN_TCP, AT_NIGHT_TCP),
        ("sysv,tcp", OFTEN_SYSV, AT_NIGHT_SYSV),
    )
    for odd in (*often, *(at_night if LONG else ()))
]
SIZES = (1, 100, 5000, 9000, 30_000, 100_000, 600_000)


def start(transports: str) -> UcxServer:
    """The operator's choice is the option's; the clients' that of their environment."""
    options = ("-m", "256", "-t", "2", f"--ucx-transports={transports}" if "," in transports else "--ucx-client-memory=64")
    return UcxServer(*options, transports=transports)


@contextlib.contextmanager
def bystander(server: UcxServer):
    """A client that is answered all the time, and keeps its endpoint."""
    stop = threading.Event()
    failures: list[str] = []
    done = [0]

    def work() -> None:
        try:
            with server.server.connect() as sock:
                while not stop.wait(0.005):
                    value = b"%d" % done[0] + b"b" * (done[0] * 997 % 20_000)
                    assert ask(sock, b"set by 0 0 %d\r\n%s\r\n" % (len(value), value), b"\r\n") == b"STORED\r\n"
                    assert ask(sock, b"get by\r\n", b"END\r\n") == b"VALUE by 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
                    done[0] += 1
        except Exception as error:  # noqa: BLE001 - any failure is the test's result
            failures.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_for(lambda: done[0] or failures, "the bystander begins")
        yield
        before = done[0]
        wait_for(lambda: failures or done[0] > before + 2, "the bystander goes on")
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


def use(server: UcxServer, bridge: Bridge) -> bool:
    """Values of several sizes both ways. False: the server or the client ended the connection, or UCX had no way."""
    with server.reached_by(bridge).connect() as sock:
        sock.settimeout(PATIENCE_S)
        for size in SIZES:
            value = b"%d" % size * (size // 3 + 1)
            value = value[:size]
            try:
                reply = ask(sock, b"set odd 0 0 %d\r\n%s\r\n" % (size, value), b"\r\n")
                got = ask(sock, b"get odd\r\n", b"END\r\n") if reply else b""
            except OSError:
                return False
            if not got:
                return False
            assert reply == b"STORED\r\n"
            assert got == b"VALUE odd 0 %d\r\n%s\r\nEND\r\n" % (size, value)
    return True


@pytest.mark.parametrize(("transports", "odd"), CASES)
def test_a_client_in_an_odd_environment(transports, odd, tmp_path, monkeypatch):
    with start(transports) as server:
        for setting in odd.split():
            name, value = setting.split("=")
            monkeypatch.setenv(f"UCX_{name}", value.replace("TMP", str(tmp_path)))
        with bystander(server):
            bridge = Bridge(server.ucx_port, server.transports if "TLS" not in odd else "shm")
            try:
                answered = use(server, bridge)
            finally:
                bridge.kill()
            assert answered != (odd in NO_WAY), "a client with other settings is answered all the same"
        assert server.sockets.alive()
        assert server.stats()["ucx_restarts"] == "0"


def test_settings_of_a_file_of_ucx(tmp_path, monkeypatch):
    (tmp_path / "ucx.conf").write_text("UCX_POSIX_FIFO_SIZE=1024\nUCX_POSIX_SEG_SIZE=64k\n")
    with start("shm") as server:
        monkeypatch.setenv("UCX_CONFIG_DIR", str(tmp_path))
        with bystander(server):
            bridge = Bridge(server.ucx_port, server.transports)
            try:
                assert use(server, bridge)
            finally:
                bridge.kill()
        assert server.sockets.alive()


# With these alone, and the usual layout, a server that does not ask lets it in.
FOREIGN = {"UCX_MM_ERROR_HANDLING": "y", "UCX_RNDV_SCHEME": "get_zcopy", "UCX_TLS": "^self,sysv"}


def run_foreign(server: UcxServer, terms: str, **settings: str) -> str:
    """Connects and says hello; what became of it."""
    result = subprocess.run(
        [find_ucx_program("ucx_foreign"), "127.0.0.1", str(server.ucx_port), terms],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **FOREIGN, **environment(server.transports), **{f"UCX_{name}": value for name, value in settings.items()}},
    )
    assert result.returncode == 0, result.stderr
    # What UCX versions before 1.20 say of a name that they do not know: the setting is not made.
    assert terms != "ours" or "invalid configuration" not in result.stdout + result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("transports", ("shm", "tcp"))
def test_who_does_not_state_our_terms_is_refused(transports):
    """A client that is built on UCX alone. Its settings would end the server."""
    odd = {"POSIX_FIFO_SIZE": "1024", "POSIX_FIFO_ELEM_SIZE": "256", "TCP_TX_SEG_SIZE": "256k", "TCP_RX_SEG_SIZE": "512k"}
    with start(transports) as server, bystander(server):
        assert run_foreign(server, "ours", LOG_LEVEL="warn") == "welcome"
        refused = 0
        for terms in ("none", "zero", "settings", "version"):
            for settings in ({}, odd, {"UNIFIED_MODE": "y"}, {"SA_DATA_VERSION": "v2", "ADDRESS_VERSION": "v2"}):
                assert run_foreign(server, terms, **settings) == "refused"
                refused += 1
        stats = server.stats()
        assert stats["ucx_other_terms"] == str(refused)
        assert stats["ucx_refused"] == stats["ucx_broken_rules"] == stats["ucx_restarts"] == "0"
        assert run_foreign(server, "ours") == "welcome"


def test_transports_that_the_operator_chose(monkeypatch):
    """Over tcp no memory is shared, whatever clients and the server's own environment would have."""
    with UcxServer("--ucx-transports=tcp") as server:
        with server.server.connect() as sock:
            assert ask(sock, b"set a 0 0 1\r\nx\r\n", b"\r\n") == b"STORED\r\n"
            files = [os.readlink(entry) for entry in os.scandir(f"/proc/{server.sockets.pid}/fd")]
            assert files and not [name for name in files if "ucx_shm" in name]
    with pytest.raises(ServerError), UcxServer("--ucx-transports=nothing"):
        pass
