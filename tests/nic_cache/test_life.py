# SPDX-License-Identifier: Apache-2.0
"""Servers with a NIC cache that end, in good or bad ways, and interfaces that go."""

from __future__ import annotations

import os
import signal
import socket
import subprocess

import pytest
from harness.exchange import ask
from harness.fixtures import require_target
from harness.network import in_own_network
from harness.patience import PATIENCE_S
from harness.servers import ServerError
from harness.veth import HOST, NEAR, ip

from .support import NicServer, request, say

ROUNDS = 100 if "WARPCACHE_LONG_TESTS" in os.environ else 8


@pytest.mark.long
@in_own_network
def test_a_killed_server_leaves_nothing_that_answers(link):
    """Each server has another value; none is ever answered after its server's death."""
    pair = link()
    with pair.udp(HOST, 11311) as udp:
        for number in range(ROUNDS):
            with NicServer(pair, "native") as server:
                # The next datagram that comes is of this server.
                assert say_until_heard(udp, b"get a\r\n", number) == b"END\r\n"
                server.tell(b"set a 0 0 2\r\n%02d\r\n" % number)
                hits = server.copy(udp, b"a")
                assert say(udp, b"get a\r\n") == b"VALUE a 0 2\r\n%02d\r\nEND\r\n" % number
                assert server.count("hits") == hits + 1
                server.server.process.kill()
                server.server.wait_exit()
            udp.send(request(b"get a\r\n", 1000))


def say_until_heard(udp: socket.socket, text: bytes, number: int) -> bytes:
    """The host's stack may have told this socket of requests that nobody took."""
    while True:
        try:
            return say(udp, text, number)
        except ConnectionRefusedError:
            continue


@in_own_network
def test_a_stopped_server_is_not_answered_for(link):
    """When the server has given no sign of life for a second, its program passes everything."""
    with NicServer(link(), "native") as server, server.udp() as udp:
        server.tell(b"set a 0 0 1\r\nx\r\n")
        server.copy(udp, b"a")
        server.server.process.send_signal(signal.SIGSTOP)
        try:
            udp.settimeout(1.0)
            answers = []
            while True:
                udp.send(request(b"get a\r\n"))
                answers.append(udp.recv(100))
        except TimeoutError:
            pass
        finally:
            server.server.process.send_signal(signal.SIGCONT)
        udp.settimeout(PATIENCE_S)
        assert set(answers) <= {request(b"VALUE a 0 1\r\nx\r\nEND\r\n")}
        assert udp.recv(100) == request(b"VALUE a 0 1\r\nx\r\nEND\r\n")  # the one that waited
        assert server.count("asleep") >= 1


@in_own_network
def test_a_server_that_ends_detaches(link):
    pair = link()
    with NicServer(pair, "native"):
        assert "xdp" in shown(NEAR)
    assert "xdp" not in shown(NEAR)


def shown(interface: str) -> str:
    return subprocess.run(["ip", "link", "show", interface], capture_output=True, text=True, timeout=PATIENCE_S).stdout


@in_own_network
def test_two_servers_on_one_interface(link):
    with NicServer(link(), "native") as server:
        with pytest.raises(ServerError, match=f"--nic-cache={NEAR}: another XDP program is on the interface"):
            NicServer(server.link, "native", "-U", "11312")


@in_own_network
def test_the_next_server_takes_the_interface_over(link):
    """An upgrade: the new server starts beside the old one, whose program stays until it ends."""
    pair = link()
    with NicServer(pair, "native", "-o", "share_ports") as old:
        with NicServer(pair, "native", "-o", "share_ports") as new:
            assert (old.stats()["attached"], new.stats()["attached"]) == (1, 0)
            old.server.process.send_signal(signal.SIGUSR1)
            assert old.server.wait_exit() == 0, old.server.log()
            new.wait_until("attached", 1)
            assert "another XDP program is on the interface; this server's takes its place" in new.server.log()
            with new.udp() as udp:
                new.tell(b"set a 0 0 1\r\nx\r\n")
                hits = new.copy(udp, b"a")
                assert say(udp, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
                assert new.count("hits") == hits + 1
    assert "xdp" not in shown(NEAR)


@in_own_network
def test_the_interface_goes(link):
    with NicServer(link(), "native") as server, server.udp() as udp:
        server.tell(b"set a 0 0 1\r\nx\r\n")
        server.copy(udp, b"a")
        ip("link", "del", NEAR)
        server.wait_until("attached", 0)
        assert server.tell(b"get a\r\n", b"END\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        assert "the interface is gone" in server.server.log()


@in_own_network
def test_what_is_asked_for_once_puts_no_copy_out(link):
    with NicServer(link(), "native", "--nic-cache-memory=1", "--nic-cache-fill=frequent") as server, server.udp() as udp:
        for number in range(12000):
            server.sock.sendall(b"set k%d 0 0 1 noreply\r\nx\r\n" % number)
        assert ask(server.sock, b"mn\r\n") == b"MN\r\n"

        def get(key: bytes) -> None:
            assert say(udp, b"get " + key + b"\r\n") == b"VALUE %s 0 1\r\nx\r\nEND\r\n" % key

        for number in range(12000):
            get(b"k%d" % number)
        server.wait_for("rare", 1)
        stats = server.stats()
        assert stats["evicted"] < stats["rare"]
        # What is asked for again is copied, whatever it puts out.
        for number in range(12000 - 50, 12000):
            server.copy(udp, b"k%d" % number)


@in_own_network
def test_more_items_than_memory_for_copies(link):
    with NicServer(link(), "native", "--nic-cache-memory=1") as server, server.udp() as udp:
        value = b"v" * 100
        for number in range(6000):
            server.sock.sendall(b"set k%d 0 0 100 noreply\r\n%s\r\n" % (number, value))
        assert ask(server.sock, b"mn\r\n") == b"MN\r\n"
        for _ in range(2):
            for number in range(6000):
                key = b"k%d" % number
                assert say(udp, b"get " + key + b"\r\n") == b"VALUE %s 0 100\r\n%s\r\nEND\r\n" % (key, value)
        stats = server.stats()
        assert 0 < stats["copies_bytes"] <= stats["limit_bytes"]
        assert stats["evicted"] > 0


def test_refusals():
    target = require_target("warpcached")
    name = "1 to 15 characters"
    for options, text in [
        (["--nic-cache=x0", "-U", "0"], "--nic-cache answers UDP only"),
        (
            ["--nic-cache=x0", "-U", "11311", "--engine=cuda", "--nic-cache-write=back"],
            "--nic-cache-write=back cannot be had with --engine=cuda",
        ),
        (
            ["--nic-cache=x0", "-U", "11311", "--engine=cuda", "--gpu-mode=edge", "--frames=peer:/dev/shm/none0"],
            "--nic-cache cannot be had with --frames=peer",
        ),
        (["--nic-cache=", "-U", "11311"], name),
        (["--nic-cache=x0,other", "-U", "11311"], "native or generic"),
        (["--nic-cache-memory=0"], "a number from 1 to 65536"),
        (["--nic-cache-fill=x"], "reads, frequent or off"),
        (["--nic-cache-rate=x"], "a number from 0 to 4294967295"),
        (["--nic-cache=none0", "-U", "11311"], "there is no such interface|built without the NIC cache"),
    ]:
        done = subprocess.run(
            [target.path, "-u", "root", "-p", "-1", "-l", "127.0.0.1", *options],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode != 0
        assert any(part in done.stdout + done.stderr for part in text.split("|")), done.stderr
