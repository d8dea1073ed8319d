# SPDX-License-Identifier: Apache-2.0
"""Clients in the kernel reach the server's UDP port through raw frames of a TAP interface.

Each test has a network namespace of its own, which ends with its thread.
"""

from __future__ import annotations

import socket
import struct
import subprocess

import pytest
from harness.exchange import ask
from harness.fixtures import require_target
from harness.network import in_own_network
from harness.patience import PATIENCE_S
from harness.servers import start_server

from .support import frames_stats, ping, say, udp_to

INTERFACE = "frames0"
KERNEL, SERVER, OTHER = "10.9.0.1", "10.9.0.2", "10.9.0.77"
KERNEL6, SERVER6 = "fd09::1", "fd09::2"


class TapServer:
    def __init__(self, *options: str, address: str = f"{KERNEL}/24"):
        target = require_target("warpcached")
        frames = f"--frames=tap:{INTERFACE}," + address
        # TCP comes to the address of the interface.
        host = address.split("/")[0]
        listen = f"[{host}]" if ":" in host else host
        self.server = start_server(target, (frames, "-l", listen, *options))

    def __enter__(self):
        self.sock = self.server.connect()
        return self

    def __exit__(self, *_):
        self.sock.close()
        assert self.server.stop() == 0, self.server.log()
        names = [name for _, name in socket.if_nameindex()]
        assert INTERFACE not in names

    def udp(self, host: str = SERVER) -> socket.socket:
        return udp_to(host, self.server.port)

    def stats(self, name: str, value: int) -> dict[str, int]:
        return frames_stats(self.sock, name, value)


@in_own_network
def test_udp_and_tcp_have_one_store():
    with TapServer() as server:
        with server.udp() as udp, socket.create_connection((SERVER, server.server.port), PATIENCE_S) as tcp:
            assert say(udp, b"set a 5 0 3\r\nabc\r\n") == b"STORED\r\n"
            assert ask(tcp, b"get a\r\n", b"END\r\n") == b"VALUE a 5 3\r\nabc\r\nEND\r\n"
            assert ask(tcp, b"set b 0 0 1\r\nx\r\n") == b"STORED\r\n"
            assert say(udp, b"get a b\r\n", 2) == b"VALUE a 5 3\r\nabc\r\nVALUE b 0 1\r\nx\r\nEND\r\n"
            assert say(udp, b"version\r\n", 3).startswith(b"VERSION ")
            assert say(udp, b"mg a v f\r\nmn\r\n", 4) == b"VA 3 f5\r\nabc\r\nMN\r\n"
        stats = server.stats("frames_sent", 4)
        assert stats["frames_requests"] == stats["frames_sent"] == 4
        assert stats["frames_passed_on"] > 0
        assert stats["frames_pass_failed"] == stats["frames_send_failed"] == 0


@in_own_network
def test_every_address_of_the_network_is_the_servers():
    with TapServer() as server, server.udp(SERVER) as one, server.udp(OTHER) as other:
        assert say(one, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
        assert say(other, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"


@in_own_network
def test_ipv6():
    with TapServer(address=f"{KERNEL6}/64") as server:
        with server.udp(SERVER6) as udp:
            assert say(udp, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
            assert say(udp, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
        with socket.create_connection((SERVER6, server.server.port), PATIENCE_S) as tcp:
            assert ask(tcp, b"get a\r\n", b"END\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"


@in_own_network
@pytest.mark.parametrize("size", [8, 4000], ids=["whole", "in fragments"])
def test_icmp_echo(size):
    with TapServer():
        ping(SERVER, size)


@in_own_network
def test_other_ports_are_the_kernels():
    with TapServer():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as service, socket.socket(
            socket.AF_INET, socket.SOCK_DGRAM
        ) as client:
            service.bind((KERNEL, 0))
            service.settimeout(PATIENCE_S)
            client.settimeout(PATIENCE_S)
            port = service.getsockname()[1]
            client.connect((SERVER, port))
            client.send(b"question")
            data, source = service.recvfrom(100)
            assert (data, source[0]) == (b"question", SERVER)
            service.sendto(b"answer", source)
            assert client.recv(100) == b"answer"
            # Where nobody listens the kernel says so.
            service.close()
            client.send(b"question")
            with pytest.raises(ConnectionRefusedError):
                client.recv(100)


@in_own_network
def test_long_replies_only_to_who_may_have_them():
    value = b"v" * 20_000
    stored = b"set a 0 0 20000\r\n" + value + b"\r\n"
    hit = b"VALUE a 0 20000\r\n" + value + b"\r\nEND\r\n"
    with TapServer("--udp-allow=10.0.0.0/8") as server, server.udp() as udp:
        assert ask(server.sock, stored) == b"STORED\r\n"
        assert say(udp, b"get a\r\n") == hit
    with TapServer() as server, server.udp() as udp:
        assert ask(server.sock, stored) == b"STORED\r\n"
        udp.send(struct.pack(">HHHH", 1, 0, 1, 0) + b"get a\r\n")
        assert say(udp, b"get b\r\n", 2) == b"END\r\n"
        assert server.stats("frames_replies_amplified", 1)["frames_replies_amplified"] == 1


@in_own_network
def test_many_clients():
    with TapServer() as server:
        socks = [server.udp(f"10.9.0.{2 + i}") for i in range(50)]
        for number, sock in enumerate(socks):
            text = b"set key%d 0 0 4\r\n%04d\r\n" % (number, number)
            sock.send(struct.pack(">HHHH", number, 0, 1, 0) + text)
        for sock in socks:
            assert sock.recv(100)[8:] == b"STORED\r\n"
        for _ in range(20):
            for number, sock in enumerate(socks):
                sock.send(struct.pack(">HHHH", number, 0, 1, 0) + b"get key%d\r\n" % number)
            for number, sock in enumerate(socks):
                assert sock.recv(100)[8:] == b"VALUE key%d 0 4\r\n%04d\r\nEND\r\n" % (number, number)
        for sock in socks:
            sock.close()


def test_refusals():
    target = require_target("warpcached")
    for option, text in [
        ("--frames=tap:", "give pcap:IN,OUT, tap:NAME, tap:NAME,ADDRESS/BITS, dpdk:DEVICE,ARGUMENTS, ring:NAME or peer:FILE"),
        ("--frames=pcap:a", "give pcap:IN,OUT, tap:NAME, tap:NAME,ADDRESS/BITS, dpdk:DEVICE,ARGUMENTS, ring:NAME or peer:FILE"),
        ("--frames=eth0", "give pcap:IN,OUT, tap:NAME, tap:NAME,ADDRESS/BITS, dpdk:DEVICE,ARGUMENTS, ring:NAME or peer:FILE"),
        ("--frames=pcap:/nothing/here,/tmp/x", "/nothing/here: No such file or directory"),
        ("--frames=tap:a-name-that-is-too-long", "1 to 15 characters"),
        ("--frames=dpdk:", "give pcap:IN,OUT, tap:NAME"),
        ("--frames-queues=2", "need --frames=dpdk:DEVICE"),
        ("--frames-threads=1", "need --frames=dpdk:DEVICE"),
        ("--frames-burst=8", "give a number from 32 to 8192"),
        ("--frames-depth=9", "give a number from 1 to 8"),
        ("--frames-cpus=0", "need --frames=dpdk:DEVICE"),
        ("--frames-cpus=1-", "give numbers of CPUs, as 1,4-7"),
        ("--frames-kernel=a", "need --frames=dpdk:DEVICE"),
    ]:
        done = subprocess.run(
            [target.path, "-u", "root", "-p", "-1", "-l", "127.0.0.1", option],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode != 0
        assert text in done.stdout + done.stderr
