# SPDX-License-Identifier: Apache-2.0
"""Network namespaces for tests. A namespace ends with its thread and what was started in it."""

from __future__ import annotations

import concurrent.futures
import ctypes
import fcntl
import functools
import os
import socket
import struct

import pytest

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def enter_new_network() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNET) != 0:
        pytest.skip("no network namespace may be made")
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("there is no /dev/net/tun")
    with socket.socket() as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    # Otherwise a new IPv6 address may not be used for a second.
    for name in ("all", "default"):
        path = f"/proc/sys/net/ipv6/conf/{name}/accept_dad"
        if os.path.exists(path):
            with open(path, "w") as file:
                file.write("0")


def in_own_network(test):
    """Runs the test in a thread with a network namespace of its own."""

    @functools.wraps(test)
    def run(*arguments, **named):
        def body():
            enter_new_network()
            return test(*arguments, **named)

        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            return executor.submit(body).result()

    return run
