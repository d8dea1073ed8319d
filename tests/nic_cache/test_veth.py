# SPDX-License-Identifier: Apache-2.0
"""Clients reach the server through its NIC cache, over a veth pair."""

from __future__ import annotations

import signal
import time

import pytest
from harness.network import in_own_network
from harness.patience import PATIENCE_S
from harness.veth import HOST, HOST6, VLAN_HOST, ip

from .support import NicServer, request, say

MODES = pytest.mark.parametrize("mode", ["native", "generic"])


@MODES
@in_own_network
def test_a_get_is_answered_before_the_stack(link, mode):
    with NicServer(link(), mode) as server:
        for host in (HOST, HOST6):
            with server.udp(host) as udp:
                key = b"a" if host == HOST else b"b"
                assert server.tell(b"set %s 5 0 3\r\nabc\r\n" % key) == b"STORED\r\n"
                hits = server.count("hits")
                assert say(udp, b"get %s\r\n" % key) == b"VALUE %s 5 3\r\nabc\r\nEND\r\n" % key
                server.wait_for("copies", 1 if host == HOST else 2)
                assert server.count("hits") == hits
                assert say(udp, b"get %s\r\n" % key, 7) == b"VALUE %s 5 3\r\nabc\r\nEND\r\n" % key
                cas = ask_gets(server, key)
                assert say(udp, b"gets %s\r\n" % key, 8) == b"VALUE %s 5 3 %d\r\nabc\r\nEND\r\n" % (key, cas)
                assert server.count("hits") == hits + 2, str(server.stats())


def ask_gets(server: NicServer, key: bytes) -> int:
    return int(server.tell(b"gets %s\r\n" % key, b"END\r\n").split()[4])


@in_own_network
def test_vlan(link):
    pair = link()
    pair.add_vlan(7)
    with NicServer(pair, "native", "-l", VLAN_HOST, "--udp-allow=10.8.7.0/24") as server, server.udp(VLAN_HOST) as udp:
        server.tell(b"set a 0 0 1\r\nx\r\n")
        hits = server.copy(udp, b"a")
        assert say(udp, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        assert server.count("hits") == hits + 1


@in_own_network
def test_each_queue_has_its_counters(link):
    """Frames of several flows come by several queues; what they count together is what was asked."""
    with NicServer(link(queues=4), "native") as server:
        server.tell(b"set a 0 0 1\r\nx\r\n")
        with server.udp() as udp:
            server.copy(udp, b"a")
        before = server.count("requests")
        hits = server.count("hits")
        sockets = [server.udp() for _ in range(32)]
        for sock in sockets:
            with sock:
                assert say(sock, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        stats = server.stats()
        queues = {name.split("_")[0] for name, value in stats.items() if name.endswith("_requests") and value}
        assert len(queues) > 1, stats
        assert server.count("requests") == before + 32
        assert server.count("hits") == hits + 32


@in_own_network
def test_a_source_that_sends_too_much_is_cut_off(link):
    with NicServer(link(), "native", "--nic-cache-rate=1000") as server, server.udp() as udp:
        server.tell(b"set a 0 0 1\r\nx\r\n")
        server.copy(udp, b"a")
        while server.count("limited") == 0:
            for number in range(500):
                udp.send(request(b"get a\r\n", number))
        stats = server.stats()
        assert stats["queue0_requests"] == stats["queue0_hits"] + stats["queue0_misses"] + stats["queue0_limited"]
        # TCP is not limited, and in another second the source is heard again.
        for _ in range(200):
            assert server.tell(b"get a\r\n", b"END\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        assert eventually_heard(udp, b"get a\r\n", 1000) == b"VALUE a 0 1\r\nx\r\nEND\r\n"


def eventually_heard(udp, text: bytes, number: int) -> bytes:
    """Asks again until there is an answer; answers to earlier requests are passed over."""
    udp.settimeout(0.2)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        udp.send(request(text, number))
        try:
            while (data := udp.recv(65536))[:2] != number.to_bytes(2, "big"):
                pass
            return data[8:]
        except TimeoutError:
            continue
    raise AssertionError("the source is never heard again")


CHANGES = [
    (b"set a 0 0 1\r\n2\r\n", b"STORED\r\n", b"2"),
    (b"set a 0 0 9 noreply\r\n123456789\r\nmn\r\n", b"MN\r\n", b"123456789"),
    (b"delete a\r\n", b"DELETED\r\n", None),
    (b"incr a 1\r\n", b"2\r\n", b"2"),
    (b"append a 0 0 1\r\n5\r\n", b"STORED\r\n", b"15"),
    (b"touch a -1\r\n", b"TOUCHED\r\n", None),
    (b"gat -1 a\r\nmn\r\n", b"VALUE a 0 1\r\n1\r\nEND\r\nMN\r\n", None),
    (b"flush_all\r\n", b"OK\r\n", None),
    (b"ms a 1\r\n7\r\n", b"HD\r\n", b"7"),
    (b"md a\r\n", b"HD\r\n", None),
    (b"ma a D5\r\n", b"HD\r\n", b"6"),
    (b"mg a T-1 v\r\nmn\r\n", b"VA 1\r\n1\r\nMN\r\n", None),
]


@pytest.mark.parametrize("mode", ["generic"])
@in_own_network
def test_no_reply_shows_what_was_before_a_change(link, mode):
    with NicServer(link(), mode) as server, server.udp() as udp:
        for change, answer, left in CHANGES:
            server.tell(b"set a 0 0 1\r\n1\r\n")
            hits = server.copy(udp, b"a")
            assert say(udp, b"get a\r\n") == b"VALUE a 0 1\r\n1\r\nEND\r\n"
            assert server.count("hits") == hits + 1
            assert server.tell(change, answer[-4:]).endswith(answer)
            expected = b"END\r\n" if left is None else b"VALUE a 0 %d\r\n%s\r\nEND\r\n" % (len(left), left)
            assert say(udp, b"get a\r\n") == expected, change


@in_own_network
def test_with_write_through_a_change_costs_no_miss(link):
    with NicServer(link(), "native", "--nic-cache-write=through") as server, server.udp() as udp:
        server.tell(b"set a 0 0 1\r\n0\r\n")
        server.copy(udp, b"a")
        filled, misses = server.stats()["filled"], server.count("misses")
        for version in b"1", b"2", b"3":
            server.tell(b"set a 0 0 1\r\n" + version + b"\r\n")
            filled += 1
            server.wait_for("filled", filled)
            assert say(udp, b"get a\r\n") == b"VALUE a 0 1\r\n" + version + b"\r\nEND\r\n"
        assert server.count("misses") == misses
        copies = server.stats()["copies"]
        server.tell(b"delete a\r\n")
        assert say(udp, b"get a\r\n") == b"END\r\n"
        assert server.stats()["copies"] == copies - 1


@pytest.mark.not_on_gpu(reason="accepted sets go to a store in the host's memory")
@MODES
@in_own_network
def test_with_write_back_a_set_is_answered_before_the_stack_and_seen_by_all(link, mode):
    with NicServer(link(), mode, "--nic-cache-write=back") as server, server.udp() as udp:
        server.tell(b"set a 0 0 1\r\n0\r\n")
        for number in range(1, 100):
            server.copy(udp, b"a")
            writes, value = server.count("writes"), b"%03d" % number
            assert say(udp, b"set a 0 0 3\r\n" + value + b"\r\n") == b"STORED\r\n"
            if number % 2 != 0:
                assert server.tell(b"get a\r\n", b"END\r\n") == b"VALUE a 0 3\r\n" + value + b"\r\nEND\r\n"
            assert say(udp, b"get a\r\n") == b"VALUE a 0 3\r\n" + value + b"\r\nEND\r\n"
            assert server.count("writes") == writes + 1
        assert server.tell(b"incr a 1\r\n") == b"100\r\n"
        assert server.stats()["lost_writes"] == 0


@pytest.mark.not_on_gpu(reason="accepted sets go to a store in the host's memory")
@in_own_network
def test_a_server_that_stops_has_taken_over_what_was_accepted(link, tmp_path):
    """The next server finds it in the memory file."""
    made = link()
    options = ("--nic-cache-write=back", "-e", str(tmp_path / "items"))
    with NicServer(made, "native", *options) as server, server.udp() as udp:
        server.tell(b"set a 0 0 1\r\n0\r\n")
        server.copy(udp, b"a")
        assert say(udp, b"set a 0 0 3\r\nnew\r\n") == b"STORED\r\n"
        server.server.process.send_signal(signal.SIGUSR1)
        assert server.server.wait_exit() == 0, server.server.log()
    with NicServer(made, "native", *options) as server:
        assert server.tell(b"get a\r\n", b"END\r\n") == b"VALUE a 0 3\r\nnew\r\nEND\r\n"


@in_own_network
def test_expiry_is_that_of_the_server(link):
    with NicServer(link(), "native") as server, server.udp() as udp:
        server.tell(b"debugtime p\r\n")
        server.tell(b"set a 0 5 1\r\nx\r\n")
        hits = server.copy(udp, b"a")
        for step in range(1, 5):
            server.tell(b"debugtime 1\r\n")
            assert say(udp, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n", step
        assert server.count("hits") == hits + 4
        server.tell(b"debugtime 1\r\n")
        assert say(udp, b"get a\r\n") == b"END\r\n"
        assert server.count("hits") == hits + 4


@in_own_network
def test_what_does_not_fit_is_the_servers(link):
    with NicServer(link(), "native") as server, server.udp() as udp:
        # A reply of several datagrams, an unusual command, a key that is not there, TCP.
        server.tell(b"set long 0 0 3000\r\n" + b"v" * 3000 + b"\r\n")
        server.tell(b"set a 0 0 1\r\nx\r\n")
        udp.send(request(b"get long\r\n"))
        assert len(udp.recv(2000)) + len(udp.recv(2000)) + len(udp.recv(2000)) > 3000
        assert say(udp, b"mg a s v\r\n") == b"VA 1 s1\r\nx\r\n"
        assert say(udp, b"get none\r\n") == b"END\r\n"
        assert say(udp, b"get  a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        assert server.tell(b"get a\r\n", b"END\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        assert server.count("hits") == 0


@MODES
@in_own_network
def test_a_value_that_the_frame_may_have_no_room_for(link, mode):
    """How much room a frame has is up to the driver: either way the reply is right."""
    with NicServer(link(), mode) as server, server.udp() as udp:
        value = b"v" * 1200
        server.tell(b"set a 0 0 1200\r\n" + value + b"\r\n")
        udp.send(request(b"get a\r\n"))
        assert len(udp.recv(2000)) > 1200
        server.wait_for("filled", 1)
        assert say(udp, b"get a\r\n") == b"VALUE a 0 1200\r\n" + value + b"\r\nEND\r\n"
        assert server.count("no_room") + server.count("hits") == 1


@in_own_network
def test_long_replies_only_to_who_may_have_them(link):
    with NicServer(link(), "generic", allow=()) as server, server.udp() as udp:
        value = b"v" * 1000
        server.tell(b"set a 0 0 1000\r\n" + value + b"\r\n")
        server.tell(b"set b 0 0 1\r\nx\r\n")
        hits = server.copy(udp, b"b")
        udp.send(request(b"get a\r\n"))  # the server refuses
        server.wait_for("copies", 2)
        udp.send(request(b"get a\r\n"))  # so does the program: it passes
        assert say(udp, b"get b\r\n", 2) == b"VALUE b 0 1\r\nx\r\nEND\r\n"
        assert (server.count("hits"), server.count("guarded")) == (hits + 1, 1)


@in_own_network
def test_an_address_of_another_host_is_not_the_servers(link):
    """The frame comes to this host's device, for an address that it would have to forward."""
    with NicServer(link(), "native") as server, server.udp() as udp:
        server.tell(b"set a 0 0 1\r\nx\r\n")
        hits = server.copy(udp, b"a")
        server.link.in_far(ip, "route", "add", "10.8.9.9", "via", HOST)
        with server.udp("10.8.9.9") as other:
            other.settimeout(0.3)
            other.send(request(b"get a\r\n"))
            server.wait_for("queue0_foreign", 1)
            with pytest.raises(OSError):
                other.recv(100)
        assert server.count("hits") == hits
