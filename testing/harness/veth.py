# SPDX-License-Identifier: Apache-2.0
"""A veth pair between two network namespaces: a server at the near end, clients at the far end."""

from __future__ import annotations

import concurrent.futures
import ctypes
import os
import platform
import socket
import struct
import subprocess
import threading

import pytest

from harness.network import enter_new_network
from harness.patience import PATIENCE_S

NEAR, FAR = "near0", "far0"
HOST, CLIENT = "10.8.0.1", "10.8.0.2"
HOST6, CLIENT6 = "fd08::1", "fd08::2"
VLAN_HOST, VLAN_CLIENT = "10.8.7.1", "10.8.7.2"
SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine(), -1)
BPF_PROG_LOAD, BPF_LINK_CREATE = 5, 28
BPF_PROG_TYPE_XDP, BPF_XDP, XDP_FLAGS_DRV_MODE, XDP_PASS = 6, 37, 4, 2


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        pytest.skip(f"ip {' '.join(words)}: {done.stderr.strip()}")


def bpf(command: int, attributes: bytes) -> int:
    """The system call bpf(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = libc.syscall(SYS_BPF, command, buffer, len(attributes))
    if result < 0:
        pytest.skip(f"bpf(2): {os.strerror(ctypes.get_errno())}")
    return result


def pass_all(interface: str) -> int:
    """Attaches a program that passes everything: without one, or GRO, this end of a veth pair does not take what the other
    end's program sends. It stays until the descriptor that is returned is closed."""
    text = struct.pack("<BBhiBBhi", 0xB7, 0, 0, XDP_PASS, 0x95, 0, 0, 0)  # r0 = XDP_PASS; exit
    instructions = ctypes.create_string_buffer(text, len(text))
    license_text = ctypes.create_string_buffer(b"Apache-2.0")
    load = struct.pack("IIQQ", BPF_PROG_TYPE_XDP, 2, ctypes.addressof(instructions), ctypes.addressof(license_text))
    program = bpf(BPF_PROG_LOAD, load.ljust(64, b"\0"))
    index = socket.if_nametoindex(interface)
    link = bpf(BPF_LINK_CREATE, struct.pack("IIII", program, index, BPF_XDP, XDP_FLAGS_DRV_MODE).ljust(48, b"\0"))
    os.close(program)
    return link


class Link:
    """The veth pair. The near end is in the namespace of the thread that makes it."""

    def __init__(self, queues: int = 1):
        self.executor = concurrent.futures.ThreadPoolExecutor(1)
        self.in_far(enter_new_network)
        many = ("numtxqueues", str(queues), "numrxqueues", str(queues)) if queues > 1 else ()
        ip("link", "add", NEAR, *many, "type", "veth", "peer", "name", FAR, *many)
        far = self.in_far(threading.get_native_id)
        ip("link", "set", FAR, "netns", str(far))
        self.set_up(NEAR, HOST, HOST6)
        self.in_far(self.set_up, FAR, CLIENT, CLIENT6)
        self.passing = self.in_far(pass_all, FAR)

    def set_up(self, interface: str, *addresses: str) -> None:
        for address in addresses:
            # An address is looked for elsewhere first, and cannot be used until that has ended.
            kind = ("64", "nodad") if ":" in address else ("24",)
            ip("address", "add", f"{address}/{kind[0]}", "dev", interface, *kind[1:])
        ip("link", "set", interface, "up")

    def add_vlan(self, tag: int) -> None:
        def add(interface: str, address: str) -> None:
            name = f"{interface}.{tag}"
            ip("link", "add", "link", interface, "name", name, "type", "vlan", "id", str(tag))
            self.set_up(name, address)

        add(NEAR, VLAN_HOST)
        self.in_far(add, FAR, VLAN_CLIENT)

    def in_far(self, function, *arguments):
        return self.executor.submit(function, *arguments).result(PATIENCE_S)

    def udp(self, host: str, port: int) -> socket.socket:
        """A client's socket."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = self.in_far(socket.socket, family, socket.SOCK_DGRAM)
        sock.settimeout(PATIENCE_S)
        sock.connect((host, port))
        return sock

    def close(self) -> None:
        os.close(self.passing)
        self.executor.shutdown()
        subprocess.run(["ip", "link", "del", NEAR], capture_output=True, timeout=PATIENCE_S)
