# SPDX-License-Identifier: Apache-2.0
"""What operators see, beside memcached 1.6.45: options, ports, settings, ends of connections, logins, watchers.

$MEMCACHED names the program; without one of this version the tests are skipped. Differences that docs/compatibility.md
lists are left out here.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.binary import HEADER
from harness.exchange import ask, ask_stats, begin_watch, receive_exactly, receive_until
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from harness.servers import Server, ServerError, free_port, start_server

VERSION = "memcached 1.6.45"
# The number of threads, and of requests of a connection in a row, differ by default.
LISTED_SETTINGS = {"num_threads", "num_threads_per_udp", "reqs_per_event"}


@pytest.fixture(scope="module")
def both():
    """Ours and memcached's programs."""
    memcached = require_target("memcached")
    said = subprocess.run([memcached.path, "-V"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
    if said.strip() != VERSION:
        pytest.skip(f"{memcached.path} is {said.strip()}, not {VERSION}")
    return require_target("warpcached"), memcached


class Started:
    """A program that serves, or has ended."""

    def __init__(self, program: str, options: list[str], folder: Path) -> None:
        folder.mkdir()
        self.port_file = folder / "ports"
        self.socket_file = folder / "sock"
        user = ["-u", "root"] if os.geteuid() == 0 else []
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [program, *user, *(option.replace("{dir}", str(folder)) for option in options)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "MEMCACHED_PORT_FILENAME": str(self.port_file)},
            )
        end = time.monotonic() + PATIENCE_S
        while not self._has_begun() and self.process.poll() is None:
            assert time.monotonic() < end, options
            time.sleep(0.005)

    def _has_begun(self) -> bool:
        return self.port_file.exists() or (self.socket_file.exists() and self._answers_at_socket())

    def _answers_at_socket(self) -> bool:
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(str(self.socket_file)) == 0

    def refuses(self) -> bool:
        return self.process.poll() is not None

    def ports(self, given: set[int]) -> list[str]:
        """The lines of the file of ports; `free` is one that was not given."""
        if not self.port_file.exists():
            return []
        pairs = (line.split(": ") for line in self.port_file.read_text().splitlines())
        return [f"{kind} {number if int(number) in given else 'free'}" for kind, number in pairs]

    def settings(self) -> dict[str, str] | None:
        """`stats settings` of the first TCP port at 127.0.0.1, where it speaks text."""
        found = re.search(r"TCP INET: (\d+)", self.port_file.read_text() if self.port_file.exists() else "")
        if found is None or {"-S", "binary"} & set(self.process.args):
            return None
        with socket.create_connection(("127.0.0.1", int(found[1])), PATIENCE_S) as sock:
            sock.sendall(b"stats settings\r\n")
            text = receive_until(sock, b"END\r\n").decode()
        return dict(line.split(" ", 2)[1:] for line in text.splitlines() if line.startswith("STAT "))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)


LOCAL = "-p -1 -l 127.0.0.1"
OPTIONS = [
    # Ports and addresses. {0}, {1}: free ports.
    "-p {0} -l 127.0.0.1",
    "-p -1 -l 127.0.0.1",
    "-p -1 -U -1 -l 127.0.0.1",
    "-p -1 -U 0 -l 127.0.0.1",
    "-p {0} -U {1} -l 127.0.0.1",
    "-p 0 -U {0} -l 127.0.0.1",
    "-p 0",
    "-p 0 -U 0",
    "-p 0 -l 127.0.0.1:{0}",
    "-U {0} -l 127.0.0.1",
    "-l 127.0.0.1:{0}",
    "-l 127.0.0.1:-1",
    "-l 127.0.0.1:0",
    "-l 127.0.0.1:{0},127.0.0.1:{1}",
    "-l 127.0.0.1:{0};127.0.0.1:{1}",
    "-l 127.0.0.1:{0} -l 127.0.0.1:{1}",
    "-l 127.0.0.1 -l 127.0.0.2 -p {0}",
    "-l 127.0.0.1:{0},127.0.0.2 -p {1}",
    "-l 127.0.0.1:{0} -p {1}",
    "-l 127.0.0.1:{0} -U {1}",
    "-l ,127.0.0.1 -p {0}",
    "-l 127.0.0.1,, -p {0}",
    "-l fooble",
    "-l 127.0.0.1:abc",
    "-l notls:127.0.0.1:{0}",
    "-l mtls:127.0.0.1:{0}",
    "-l btls:127.0.0.1:{0}",
    "-s {{dir}}/sock",
    "-s {{dir}}/sock -p {0}",
    "-s {{dir}}/sock -U {0}",
    "-s {{dir}}/sock -a 0777",
    # Numbers.
    "-t 0",
    "-t -1",
    "-c 0",
    f"-b 8675 {LOCAL}",
    f"-t 3 {LOCAL}",
    f"-R 5 {LOCAL}",
    f"-m 100 {LOCAL}",
    f"-I 2m {LOCAL}",
    f"-N 3 {LOCAL}",
    "-R 0",
    "-I 512",
    "-I 0",
    "-I 1025m",
    "-I 2g",
    "-f 1.0",
    "-n 0",
    f"-f 1.5 -n 100 {LOCAL}",
    # Protocols and logins.
    f"-B auto {LOCAL}",
    f"-B ascii {LOCAL}",
    f"-B binary {LOCAL}",
    "-B http",
    f"-C {LOCAL}",
    f"-S {LOCAL}",
    "-S -B auto",
    "-S -B ascii",
    "-S -U {0}",
    "-Y {{dir}}/none",
    # Rights.
    *(f"-{letter} {LOCAL}" for letter in "AFXWMLr"),
    f"-D : {LOCAL}",
    # TLS.
    "-Z",
    "-Z -o ssl_chain_cert={{dir}}/none",
    "-Z -o ssl_key={{dir}}/none",
    "-Z -o ssl_chain_cert={{dir}}/none,ssl_key={{dir}}/none",
    "-Z -o ssl_verify_mode=5",
    "-Z -o ssl_min_version=9",
    f"-o ssl_chain_cert=none {LOCAL}",
    # Words.
    "-o nosuch",
    "-o hashpower=99",
    "-o hash_algorithm=foo",
    "-o idle_timeout",
    "-o hot_lru_pct=120",
    "-o lru_crawler_sleep=2000000",
    "-o tail_repair_time=5",
    "-o proxy_config=x",
    *(
        f"-o {words} {LOCAL}"
        for words in (
            "hash_algorithm=xxh3",
            "hash_algorithm=murmur3",
            "idle_timeout=5",
            "maxconns_fast",
            "no_maxconns_fast",
            "modern",
            "no_modern",
            "no_lru_crawler",
            "no_lru_maintainer",
            "hot_lru_pct=20,warm_lru_pct=30",
            "temporary_ttl=61",
            "lru_crawler_sleep=100,lru_crawler_tocrawl=5",
            "no_hashexpand",
            "inline_ascii_resp",
            "resp_obj_mem_limit=10,read_buf_mem_limit=10",
            "slab_reassign,slab_automove=2,slab_automove_window=5",
            "worker_logbuf_size=100,watcher_logbuf_size=100",
            "drop_privileges",
            "no_drop_privileges",
        )
    ),
    "-e {{dir}}/no/folder",
    "--nosuch",
    "-Q",
]


@pytest.mark.parametrize("options", OPTIONS)
def test_options(both, tmp_path, options):
    """Both start or refuse, at the same ports and with the same settings."""
    given = [free_port(), free_port()]
    words = options.format(*given).split()
    started = []
    try:
        for number, target in enumerate(both):
            started.append(Started(target.path, words, tmp_path / f"{number}"))
            if number == 0:
                ours = (started[0].refuses(), started[0].ports(set(given)), started[0].settings())
                started[0].end()
        theirs = (started[1].refuses(), started[1].ports(set(given)), started[1].settings())
    finally:
        for one in started:
            one.end()
    assert ours[:2] == theirs[:2]
    differences = {
        name: (value, (ours[2] or {}).get(name))
        for name, value in (theirs[2] or {}).items()
        if name not in LISTED_SETTINGS and value != (ours[2] or {}).get(name)
    }
    assert not differences


def binary(opcode: int, key: bytes = b"", value: bytes = b"", extras: bytes = b"") -> bytes:
    size = len(key) + len(value) + len(extras)
    return HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, size, 0, 0) + extras + key + value


def receive_binary(sock: socket.socket) -> tuple[int, int, bytes] | str:
    """Opcode, status and body of a reply, or how the connection ended."""
    try:
        header = HEADER.unpack(receive_exactly(sock, HEADER.size))
        return header[1], header[5], receive_exactly(sock, header[6])
    except (ConnectionError, EOFError, ValueError):
        return "closed"


@pytest.fixture
def servers(both):
    """Starts both with the same options."""
    running: list[Server] = []

    def start(*options: str, **how) -> list[Server]:
        running.extend(start_server(target, options, **how) for target in both)
        return running[-2:]

    yield start
    for server in running:
        server.stop()


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


# What a client does, after which its connection ends.
ENDS: dict[str, Callable[[socket.socket], None]] = {
    "closes": lambda sock: sock.close(),
    "ends its side": lambda sock: sock.shutdown(socket.SHUT_WR),
    "resets": reset,
    "quits": lambda sock: sock.sendall(b"quit\r\n"),
    "quits by the binary protocol": lambda sock: sock.sendall(binary(0x07)),
    "quits quietly": lambda sock: sock.sendall(binary(0x17)),
    "sends a long line": lambda sock: sock.sendall(b"x" * 5000),
    "sends a long line of a set": lambda sock: sock.sendall(b"set " + b"x" * 5000),
    "sends another first byte": lambda sock: sock.sendall(binary(0, b"a") + b"\x44" + bytes(23)),
    "sends a long key": lambda sock: sock.sendall(binary(0, b"a" * 300)),
}


@pytest.mark.parametrize("what", ENDS)
def test_ends_of_connections(servers, what):
    reasons = []
    for server in servers("-t", "2"):
        with server.connect() as watcher:
            begin_watch(watcher, "connevents")
            client = server.connect()
            port = client.getsockname()[1]
            text = b""
            while b"conn_new rip=127.0.0.1 rport=%d " % port not in text:
                text += watcher.recv(65536)
            ENDS[what](client)
            while (found := re.search(rb"conn_close [^\n]*rport=%d [^\n]*reason=(\w+)" % port, text)) is None:
                text += watcher.recv(65536)
            reasons.append(found[1])
    assert reasons[0] == reasons[1]


LOGIN = b"\0alice\0secret"
LOGINS = {
    "list": binary(0x20),
    "right": binary(0x21, b"PLAIN", LOGIN),
    "wrong": binary(0x21, b"PLAIN", b"\0alice\0wrong"),
    "empty": binary(0x21, b"PLAIN"),
    "step": binary(0x22, b"PLAIN", LOGIN),
    "empty step": binary(0x22, b"PLAIN"),
    "for another": binary(0x21, b"PLAIN", b"bob\0alice\0secret"),
    "for itself": binary(0x21, b"PLAIN", b"alice\0alice\0secret"),
    "no zero": binary(0x21, b"PLAIN", b"alice"),
    "lower case": binary(0x21, b"plain", LOGIN),
    "other mechanism": binary(0x21, b"OTHER", LOGIN),
    "no mechanism": binary(0x21, b"", LOGIN),
    "long mechanism": binary(0x21, b"X" * 33, LOGIN),
    "too long": binary(0x21, b"PLAIN", LOGIN + b"x" * 3000),
    "get": binary(0x00, b"k"),
    "set": binary(0x01, b"k", b"v", bytes(8)),
    "quiet set": binary(0x11, b"k", b"v", bytes(8)) + binary(0x0A),  # one of them is answered
    "noop": binary(0x0A),
    "unknown": binary(0x55),
    "quit": binary(0x07),
    "list with a value": binary(0x20, b"", b"abc"),
    "list with a key": binary(0x20, b"abc"),
}
# docs/compatibility.md, SASL: refused or accepted otherwise.
LISTED_LOGINS = set(itertools.product(("right", "for itself", "lower case"), ("empty", "too long")))


def login_orders() -> list[tuple[str, ...]]:
    longer = [
        ("empty", "step", "get"),
        ("right", "list", "get"),
        ("right", "right", "get"),
        ("right", "wrong", "get"),
        ("wrong", "right", "get"),
        ("right", "unknown", "get"),
        ("right", "step", "get"),
        ("right", "other mechanism", "get"),
        ("right", "no mechanism", "get"),
    ]
    pairs = (pair for pair in itertools.product(LOGINS, repeat=2) if pair not in LISTED_LOGINS)
    return [*((one,) for one in LOGINS), *pairs, *longer]


def test_logins_in_any_order(servers, tmp_path):
    users = tmp_path / "users"
    host = socket.gethostname()
    # memcached's library completes a name to user@host.
    users.write_text("".join(f"{name}:{word}\n" for name, word in (("alice", "secret"), (f"alice@{host}", "secret"))))
    users.chmod(0o644)
    (tmp_path / "memcached.conf").write_text("mech_list: plain\n")
    try:
        pair = servers("-S", "-t", "2", env={"MEMCACHED_SASL_PWDB": str(users), "SASL_CONF_PATH": str(tmp_path)})
    except ServerError as error:
        if "built without" in str(error) or "libsasl2" in str(error):
            pytest.skip("one of them is built without SASL")
        raise

    def replies(server: Server, order: tuple[str, ...]) -> list:
        """To each message, and to a last one that is answered to everyone."""
        with server.connect() as sock:
            got = []
            for name in order:
                if got and got[-1] == "closed":
                    break
                try:
                    sock.sendall(LOGINS[name])
                    got.append(receive_binary(sock))
                except ConnectionError:
                    got.append("closed")
            return got

    differences = {}
    for order in login_orders():
        ours, theirs = (replies(server, order) for server in pair)
        if ours != theirs:
            differences[order] = (ours, theirs)
    assert not differences


WATCHED = [
    b"get foo",
    b"set foo 0 0 2\r\nhi",
    b"get foo",
    b"gets foo bar",
    b"gat 100 foo",
    b"touch foo 0",
    b"add foo 0 0 1\r\nx",
    b"replace foo 0 0 1\r\nx",
    b"append foo 0 0 1\r\ny",
    b"prepend foo 0 0 1\r\nz",
    b"cas foo 0 0 1 999999\r\nz",
    b"cas nope 0 0 1 9\r\nz",
    b"incr foo 1",
    b"set n 0 0 1\r\n1",
    b"incr n 5",
    b"incr none 5",
    b"delete n",
    b"delete n",
    b"mg foo v",
    b"mg none v",
    b"mg none v N0",
    b"mg Zm9v b v k",
    b"ms foo 2 T0\r\nhi",
    b"ms foo 2 MA\r\nhi",
    b"ms new 2 ME\r\nhi",
    b"ms new 2 ME\r\nhi",
    b"ms new 2 C99999\r\nhi",
    b"ms new 2 I C1\r\nhi",
    b"ma cnt N0 J13 v",
    b"ma cnt v",
    b"md cnt",
    b"md new I",
    b"mg new v",
    b"md none",
    b"me foo",
    b"get a%b",
    b"get k\xff\x01",
    b"verbosity 0",
    b"nonsense",
    b"set fl 0 0 1\r\nx",
]


@pytest.mark.parametrize("kinds", ["fetchers", "mutations", "deletions", "fetchers mutations deletions"])
def test_lines_of_watchers(servers, kinds):
    """The same lines for the same commands. The last one shows that all have come."""

    def lines(server: Server) -> list[str]:
        with server.connect() as watcher, server.connect() as client:
            begin_watch(watcher, kinds)
            for command in [*WATCHED, b"get end", b"set end 0 0 1\r\nx", b"delete end"]:
                client.sendall(command + b"\r\nmn\r\n")
                receive_until(client, b"MN\r\n")
            last = {"fetchers": "item_get key=end status=found", "mutations": "item_store key=end "}
            text = ""
            while last.get(kinds, "deleted key=end ") not in text or not text.endswith("\n"):
                text += watcher.recv(65536).decode("latin1")
            found = [re.sub(r"^ts=\d+\.\d+ gid=\d+ ", "", line) for line in text.splitlines()]
            found = [re.sub(r"cfd=\d+", "cfd=N", re.sub(r"clsid=[1-9]\d*", "clsid=C", line)) for line in found]
            return sorted(line for line in found if "key=end" not in line)

    ours, theirs = (lines(server) for server in servers("-t", "1"))
    assert ours == theirs


def test_states_of_connections(servers):
    """`stats conns`: the same names and states, in the same form."""

    def shown(server: Server) -> list[str]:
        with server.connect() as idle, server.connect() as body, server.connect() as asks:
            assert ask(idle, b"mn\r\n") == b"MN\r\n"
            body.sendall(b"set k 0 0 10\r\nabc")
            end = time.monotonic() + PATIENCE_S
            while "conn_nread" not in (values := ask_stats(asks, "conns")).values():
                assert time.monotonic() < end, values
            pairs = ((name.split(":")[1], value) for name, value in values.items())
            return sorted(
                f"{name} {re.sub(r':[0-9]+$', ':PORT', value) if name != 'secs_since_last_cmd' else 'N'}"
                for name, value in pairs
            )

    ours, theirs = (shown(server) for server in servers("-t", "1"))
    assert ours == theirs
    ours, theirs = (shown(server) for server in servers("-t", "1", udp=True))
    assert ours == theirs and "UDP UDP" in ours


def test_ages_of_items(servers):
    """`stats items` shows for how long the oldest item has not been read."""
    for server in servers("-t", "1"):
        with server.connect() as sock:
            ask(sock, b"set k 0 0 1\r\nx\r\n")
            end = time.monotonic() + PATIENCE_S
            age = -1
            while age < 1:
                assert time.monotonic() < end, age
                time.sleep(0.2)
                values = ask_stats(sock, "items")
                age = max((int(value) for name, value in values.items() if name.endswith(":age")), default=-1)
