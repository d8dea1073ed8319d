# SPDX-License-Identifier: Apache-2.0
"""The bytes that broke memcached, as far as they are known. Here they are refused or served."""

from __future__ import annotations

import base64
import random
import statistics
import time

import pytest
from harness.channels import UDP_HEADER
from harness.exchange import ask
from harness.patience import PATIENCE_S
from harness.servers import start_server as start

from faults.hostile import drain, say_and_listen
from faults.support import (
    allowed_mib,
    bystander,
    check_memory,
    cpu_seconds,
    packet,
    pattern,
    split_packets,
    store,
)

TREASURE = pattern(4, 5000)


@pytest.fixture
def guarded(server):
    """A server with a value that is still there, whole, after whatever the test did."""
    with server.connect() as sock:
        store(sock, b"treasure", TREASURE)
    with bystander(server):
        yield server
    reply = say_and_listen(server, b"get treasure\r\n")
    assert reply == b"VALUE treasure 0 5000\r\n" + TREASURE + b"\r\nEND\r\n"
    check_memory(server, allowed_mib(64, busy=20))


def refused(server, request: bytes) -> None:
    """Binary: an error or a closed connection, nothing else; never a success."""
    packets = split_packets(say_and_listen(server, request))
    assert all(status != 0 for _, status, _, _ in packets), packets


APPENDS = ("append", "prepend", "appendq", "prependq")
STORES = ("set", "add", "replace", "setq", "addq", "replaceq")


@pytest.mark.parametrize("opcode", APPENDS)
def test_cve_2016_8704_append_whose_key_exceeds_its_body(guarded, opcode):
    """bodylen - keylen was taken for the value's size, and was negative."""
    for keylen, bodylen in ((250, 0), (250, 1), (250, 249), (8, 7), (0xFFFF, 0), (0xFFFF, 0xFFFE)):
        request = packet(opcode, b"A" * 250, keylen=keylen, bodylen=bodylen)
        refused(guarded, request + b"A" * 1000)
    refused(guarded, packet(opcode, b"treasure", keylen=8, bodylen=0) + b"A" * 5000)


@pytest.mark.parametrize("opcode", STORES)
def test_cve_2016_8705_store_whose_key_and_extras_exceed_its_body(guarded, opcode):
    """The same with extras, and with body lengths that are negative as signed numbers."""
    for bodylen in (0, 7, 8, 257, 0xFFFFFFD0, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF):
        request = packet(opcode, b"", bytes(8) + b"A" * 1024, keylen=250, extlen=8, bodylen=bodylen)
        refused(guarded, request)


@pytest.mark.parametrize("opcode", ["sasl_auth", "sasl_step", "sasl_list"])
def test_cve_2016_8706_sasl_whose_mechanism_exceeds_its_body(guarded, opcode):
    for keylen, bodylen in ((32, 1), (32, 0), (250, 31), (0xFFFF, 0), (32, 0xFFFFFFFF)):
        refused(guarded, packet(opcode, b"A" * 1000, keylen=keylen, bodylen=bodylen))


@pytest.mark.parametrize("opcode", STORES)
def test_cve_2017_9951_lengths_compared_with_the_wrong_sign(guarded, opcode):
    """The incomplete fix of 8705: a body length above 2^31 passed a signed comparison."""
    for bodylen in (0x80000000, 0x80000102, 0xC0000000, 0xFFFFFF00, 0xFFFFFFFE, 0xFFFFFFFF):
        for keylen, extlen in ((250, 8), (1, 8), (250, 0), (0, 0), (0xFFFF, 0xFF)):
            lengths = {"keylen": keylen, "extlen": extlen, "bodylen": bodylen}
            refused(guarded, packet(opcode, b"", bytes(8) + b"k" * 300, **lengths))


def test_cve_2018_1000115_udp_is_off(start_server):
    """No datagram is answered unless UDP was asked for."""
    server = start_server("-t", "2")
    with open(f"/proc/{server.pid}/net/udp") as table:
        ports = {int(line.split()[1].split(":")[1], 16) for line in list(table)[1:]}
    assert server.port not in ports
    with server.connect_udp() as sock:
        sock.settimeout(0.2)
        sock.send(UDP_HEADER.pack(1, 0, 1, 0) + b"stats\r\n")
        with pytest.raises(OSError):
            sock.recv(65536)


def test_cve_2018_1000115_udp_does_not_amplify(start_server):
    """Where it is on, and its sender not trusted, a spoofed request yields little more than it cost."""
    server = start_server("-t", "2", "--udp-allow", "192.0.2.0/24", udp=True)
    with server.connect() as sock:
        store(sock, b"a", bytes(900_000))
        store(sock, b"b", b"x" * 200)
    requests = [b"get a\r\n", b"get " + b"a " * 600 + b"\r\n", b"stats\r\n", b"stats settings\r\n"]
    requests += [b"get " + b"b " * 600 + b"\r\n", b"mg a v\r\n" * 100, packet("stat"), packet("get", b"a")]
    requests += [b"gat 0 " + b"b " * 300 + b"\r\n", b"stats items\r\n" * 90, b"lru_crawler metadump all\r\n"]
    sent = received = 0
    with bystander(server), server.connect_udp() as sock:
        for number, request in enumerate(requests * 5):
            sock.send(UDP_HEADER.pack(number, 0, 1, 0) + request)
            sent += len(request) + UDP_HEADER.size
            received += sum(map(len, drain(sock)))
        received += sum(map(len, drain(sock, 0.3)))
    assert received <= 10 * sent, "--udp-amplification is 10 by default"


LRU_WORDS = "lru lru_crawler slabs watch cache_memlimit verbosity stats flush_all shutdown debugtime".split()
SUBWORDS = ["mode", "temp_ttl", "tune", "reassign", "automove", "metadump", "tocrawl", "sleep", "crawl"]
SUBWORDS += ["cachedump", "detail", "detail on", "reset", "settings", "fetchers", "", " ", "  "]


def test_cve_2019_11596_administrative_commands_without_arguments(guarded):
    """`lru mode` with nothing after it dereferenced a null pointer."""
    assert say_and_listen(guarded, base64.b64decode("bHJ1IG1vZGUKb7G0AGxydWRl6gdtTk9UXw=="))
    for end in (b"\r\n", b"\n", b" \r\n", b" \0\r\n", b" -1\r\n", b" 1 2 3 4 5 6 7 8 9\r\n"):
        for line in (b"lru mode", b"lru temp_ttl", b"lru"):
            assert say_and_listen(guarded, line + end).startswith((b"ERROR", b"CLIENT_ERROR", b"OK"))
        for word in LRU_WORDS:
            for sub in SUBWORDS:
                if word in ("flush_all", "cache_memlimit", "stats"):
                    continue
                assert say_and_listen(guarded, f"{word} {sub}".encode() + end), (word, sub, end)


def test_cve_2020_22570_meta_flags_without_their_numbers(guarded):
    """A flag whose number is missing or none led to an error message that was not there."""
    flags = [chr(c) + rest for c in range(33, 127) for rest in ("", "x", "-", "-1", "9" * 30, "\0")]
    for flag in flags:
        for line in (f"mg k {flag}", f"mg k v {flag}", f"md k {flag}", f"ma k {flag}", f"me k {flag}"):
            if line.startswith("mg") or flag[0] in "FSTNRICDJMbkqOx":
                say_and_listen(guarded, line.encode() + b"\r\nmn\r\n")
        if flag[0] in "FSTICMbkqOA":
            say_and_listen(guarded, f"ms k 2 {flag}\r\nab\r\nmn\r\n".encode())
    for line in (b"mg k S", b"mg k F", b"mg k Sx", b"mg k F-1"):
        assert say_and_listen(guarded, line + b"\r\n").endswith(b"\r\n")
    for line in (b"mg k Tx", b"ms k Sx", b"ms k 2 Fx\r\nab", b"ma k Nx", b"ma k Dx", b"md k Tx"):
        assert say_and_listen(guarded, line + b"\r\n").startswith((b"CLIENT_ERROR", b"ERROR"))
    for line in (b"mg", b"ms", b"md", b"ma", b"me", b"mg ", b"ms k", b"ms  ", b"ma  "):
        assert say_and_listen(guarded, line + b"\r\n").startswith((b"CLIENT_ERROR", b"ERROR"))


@pytest.mark.parametrize("extlen", [0x30, 0x80, 0xFF])
def test_cve_2020_10931_extras_longer_than_their_buffer(guarded, extlen):
    """1.6.0 copied as many extras as the header said into a buffer made for 20."""
    for opcode in range(0x26):
        body = b"A" * (extlen + 4000)
        split_packets(say_and_listen(guarded, packet(opcode, b"", body, keylen=0, extlen=extlen)))


@pytest.mark.parametrize("word", [b"get", b"gets", b"gat 0", b"gats 0", b"mg"])
def test_cve_2023_46852_many_blanks_before_the_keys(guarded, word):
    """The blanks after `get` were counted as bytes of the request that was put together anew."""
    with guarded.connect() as sock:
        store(sock, b"a", b"A")
    for blanks in (1, 2, 100, 1000, 1900, 2040, 2048, 4096, 70_000, 1_000_000):
        reply = say_and_listen(guarded, word + b" " * blanks + b"a" + b" b" * 50 + b"\r\nmn\r\n")
        assert b"\0" not in reply and reply.count(b"VALUE") <= 1
        if word == b"get" and blanks <= 1000:
            assert reply == b"VALUE a 0 1\r\nA\r\nEND\r\nMN\r\n"


@pytest.mark.parametrize("keys", [23, 24, 25, 100, 1000, 10_000, 65_535, 65_536, 100_000])
def test_cve_2023_46852_many_keys(guarded, keys):
    with guarded.connect() as sock:
        store(sock, b"a", b"A")
    reply = say_and_listen(guarded, b"get" + b" a" * keys + b"\r\nmn\r\n")
    assert reply == b"VALUE a 0 1\r\nA\r\n" * keys + b"END\r\nMN\r\n"


def test_cve_2023_46853_lines_without_their_carriage_return(guarded):
    """One byte too much was taken off a line that ends in LF alone."""
    requests = [b"get a", b"mn", b"mg a v", b"set a 0 0 1", b"version", b"touch a 1", b"gat 1 a", b""]
    for request in requests:
        assert say_and_listen(guarded, request + b"\nx\r\n" + b"\n" * 3)
    assert say_and_listen(guarded, b"get n\nmn\nget b\n") == (
        b"END\r\nCLIENT_ERROR bad command line format\r\nEND\r\n"  # memcached does not know mn so
    )


# CVE-2026-47783 and -47784: whether a user exists, and how much of a password is right, could be
# told from the time that a refused login took.

USERS = 1000
ROUNDS_MIN = 12
ROUNDS_MAX = 100  # on a busy machine the least time takes some while to be seen
LOGINS = 60
LOGINS_A_CONNECTION = 3  # the third failed one closes it
LOGINS_A_SECOND = 900  # above 1000 none is compared
SHARE_MAX = 0.15


@pytest.fixture
def login_server(target):
    users = "".join(f"user{i:04d}:{'p' * 20}{i:04d}\n" for i in range(USERS))
    server = start(target, ["-t", "1", "-Y", "{file:users}"], files={"users": users})
    yield server
    assert server.alive() and server.stop() == 0


def refused_logins(server, token: str) -> float:
    """The server's CPU time for LOGINS of them, slowly enough that each is compared."""
    request = b"set auth 0 0 %d\r\n%s\r\n" % (len(token), token.encode())
    until = time.monotonic() + LOGINS / LOGINS_A_SECOND
    before = cpu_seconds(server)
    for _ in range(LOGINS // LOGINS_A_CONNECTION):
        with server.connect(PATIENCE_S) as sock:
            sock.sendall(request * LOGINS_A_CONNECTION)
            replies = b""
            while data := sock.recv(1000):
                replies += data
        assert replies == b"CLIENT_ERROR authentication failure\r\n" * LOGINS_A_CONNECTION
    cost = cpu_seconds(server) - before
    time.sleep(max(0.0, until - time.monotonic()))
    return cost


def test_cve_2026_47783_refused_logins_cost_the_same(login_server):
    """The server's own CPU time for logins that differ in what is wrong with them alone."""
    last = USERS - 1
    tokens = {
        "first user": f"user0000 {'x' * 24}",
        "last user": f"user{last:04d} {'x' * 24}",
        "no user": f"none0000 {'x' * 24}",
        "first user, all but the password's end": f"user0000 {'p' * 20}000x",
        "last user, all but the password's end": f"user{last:04d} {'p' * 20}099x",
    }
    # Against the round's mean: what else the machine does makes whole rounds dearer.
    shares: dict[str, list[float]] = {name: [] for name in tokens}
    for round_number in range(ROUNDS_MAX):
        costs = {
            name: refused_logins(login_server, token)
            for name, token in random.sample(list(tokens.items()), len(tokens))
        }
        for name, cost in costs.items():
            shares[name].append(cost / statistics.mean(costs.values()))
        costs = {name: statistics.median(of_rounds) for name, of_rounds in shares.items()}
        alike = max(costs.values()) <= min(costs.values()) * (1 + SHARE_MAX)
        if alike and round_number >= ROUNDS_MIN:
            break
    assert alike, costs
    with login_server.connect() as sock:
        token = f"user0500 {'p' * 20}0500".encode()
        assert ask(sock, b"set auth 0 0 %d\r\n%s\r\n" % (len(token), token)) == b"STORED\r\n"
        assert ask(sock, b"mn\r\n") == b"MN\r\n"
