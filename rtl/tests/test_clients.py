# SPDX-License-Identifier: Apache-2.0
"""Clients in the kernel that reach the core through a TAP interface, each test in a network namespace of its own."""

import contextlib
import random
import signal
import socket
import struct
import subprocess
import time

import pylibmc
import pytest
import rtl_tools
from frames.support import say
from harness.network import in_own_network
from pymemcache.client.base import Client
from udp_sockets import UdpSockets

INTERFACE = "rtl0"
KERNEL, SERVER = "10.10.0.1", "10.10.0.2"
PORT = 11211
LIMIT_S = 60


@contextlib.contextmanager
def core():
    process = subprocess.Popen([rtl_tools.program("warpcached-rtl"), INTERFACE, f"{KERNEL}/24", str(PORT)],
                               stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if line == "" and process.wait(LIMIT_S) == 71:
            pytest.skip("no TAP interface may be made")
        assert line == "ready\n"
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, out
    assert INTERFACE not in [name for _, name in socket.if_nameindex()]


def client():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(LIMIT_S)
    sock.connect((SERVER, PORT))
    return sock


@in_own_network
def test_a_dialogue():
    with core(), client() as sock:
        assert say(sock, b"set a 5 0 3\r\nabc\r\n") == b"STORED\r\n"
        assert say(sock, b"get a\r\n", 2) == b"VALUE a 5 3\r\nabc\r\nEND\r\n"
        assert say(sock, b"append a 0 0 2\r\nde\r\n", 3) == b"STORED\r\n"
        assert say(sock, b"set n 0 0 1\r\n9\r\nincr n 1\r\nget a n\r\n", 4) == (
            b"STORED\r\n10\r\nVALUE a 5 5\r\nabcde\r\nVALUE n 0 2\r\n10\r\nEND\r\n")
        assert say(sock, b"delete a\r\nget a\r\n", 5) == b"DELETED\r\nEND\r\n"
        assert say(sock, b"flush_all\r\nget n\r\n", 6) == b"OK\r\nEND\r\n"
        binary = struct.pack(">BBHBBHIIQ", 0x80, 0x0A, 0, 0, 0, 0, 0, 77, 0)
        assert say(sock, binary, 7) == struct.pack(">BBHBBHIIQ", 0x81, 0x0A, 0, 0, 0, 0, 0, 77, 0)


@in_own_network
def test_many_requests_of_two_clients():
    """What a client has been told is stored, it reads; a reply never belongs to another request."""
    choose = random.Random(4)
    with core(), client() as one, client() as two:
        stored = {}
        for number in range(1500):
            sock = choose.choice((one, two))
            key = b"key%d" % choose.randrange(50)
            if choose.random() < 0.4:
                value = bytes(choose.randrange(97, 123) for _ in range(choose.randrange(300)))
                assert say(sock, b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value), number) == b"STORED\r\n"
                stored[key] = value
            else:
                want = b"END\r\n"
                if key in stored:
                    want = b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(stored[key]), stored[key])
                assert say(sock, b"get %s\r\n" % key, number) == want


@in_own_network
def test_pymemcache_over_udp():
    with core(), contextlib.closing(
        Client((SERVER, PORT), default_noreply=False, connect_timeout=LIMIT_S, timeout=LIMIT_S, socket_module=UdpSockets())
    ) as one:
        assert one.set("a", b"1", flags=5) is True and one.get("a") == b"1"
        value, cas = one.gets("a")
        assert value == b"1" and one.cas("a", b"2", cas) is True and one.cas("a", b"3", cas) is False
        assert one.incr("a", 40) == 42 and one.decr("a", 2) == 40 and one.get("a") == b"40"
        assert one.append("a", b"x") is True and one.prepend("a", b"y") is True and one.get("a") == b"y40x"
        large = bytes(range(256)) * 6  # a reply of several datagrams
        assert one.set("b", large[:1300]) is True and one.append("b", large[1300:]) is True
        assert one.get_many(["b", "none", "a", "no"]) == {"b": large, "a": b"y40x"}
        assert one.touch("a", 100) is True and one.touch("none", 100) is False
        assert one.delete("a") is True and one.get("a") is None
        assert one.add("a", b"7") is True and one.add("a", b"8") is False and one.replace("a", b"9") is True
        assert one.flush_all() is True and one.get("a") is None


@in_own_network
def test_libmemcached():
    """Its writes by UDP, which it sends without waiting for replies; gets it has none by UDP."""
    with core(), client() as sock:
        writer = pylibmc.Client([f"udp:{SERVER}:{PORT}"])
        for number in range(200):
            assert writer.set(f"u{number % 20}", b"%d" % number)
        # Datagrams of the same interface keep their order.
        deadline = time.monotonic() + LIMIT_S
        while (reply := say(sock, b"get u19\r\n")).split(b"\r\n")[1:2] != [b"199"]:
            assert time.monotonic() < deadline, reply
        for number in range(180, 200):
            assert say(sock, b"get u%d\r\n" % (number % 20), number).split(b"\r\n")[1] == b"%d" % number


@in_own_network
def test_warpcache_load():
    """The load generator stores all keys and compares every value that comes back."""
    load = rtl_tools.program("warpcache-load")
    with core():
        done = subprocess.run(
            [load, f"{SERVER}:{PORT}", "--udp", "-c", "4", "-k", "400", "--warm-up", "0", "--requests", "2000", "--json", "-"],
            capture_output=True, text=True, timeout=10 * LIMIT_S, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
