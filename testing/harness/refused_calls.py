#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tells which system calls of a running process fail with EPERM, as those do that -o drop_privileges refuses.

Usage: refused_calls.py PID        until SIGTERM, or the process ends; a line for each call: its number, the lower halves of its
first two arguments, how often.

It needs nothing but Python, and the right to trace the process. Every system call becomes some tens of microseconds slower.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PTRACE_SYSCALL, PTRACE_SEIZE, PTRACE_LISTEN = 24, 0x4206, 0x4208
PTRACE_GET_SYSCALL_INFO, PTRACE_DETACH, PTRACE_INTERRUPT = 0x420E, 17, 0x4207
OPTIONS = 1 | 8  # PTRACE_O_TRACESYSGOOD, PTRACE_O_TRACECLONE
SYSCALL_STOP = signal.SIGTRAP | 0x80
EVENT_STOP = 128  # PTRACE_EVENT_STOP
ENTRY, EXIT = 1, 2
WALL = 0x40000000


class SyscallInfo(ctypes.Structure):
    """struct ptrace_syscall_info; `values` are number and arguments at an entry, the result at an exit."""

    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("ip", ctypes.c_uint64),
        ("sp", ctypes.c_uint64),
        ("values", ctypes.c_int64 * 8),
    ]


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> bool:
    """False: the thread has ended."""
    if libc.ptrace(request, thread, address, data) != -1:
        return True
    error = ctypes.get_errno()
    if error == errno.ESRCH:
        return False
    raise OSError(error, os.strerror(error))


class Tracer:
    def __init__(self, pid: int) -> None:
        self.refused: Counter[tuple[int, int, int]] = Counter()
        self.calls: dict[int, tuple[int, int, int]] = {}  # by thread: the call that it is in
        self.seized: set[int] = set()
        # Threads that begin meanwhile are found in another round, or are traced as those of a traced thread.
        while threads := {int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()} - self.seized:
            for thread in threads:
                with contextlib.suppress(PermissionError):  # it is traced already
                    if ptrace(PTRACE_SEIZE, thread, 0, OPTIONS):
                        ptrace(PTRACE_INTERRUPT, thread)
                self.seized.add(thread)

    def run(self) -> None:
        """Until the last thread has ended."""
        info = SyscallInfo()
        while True:
            try:
                thread, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                return
            if not os.WIFSTOPPED(status):
                continue
            stop, event = os.WSTOPSIG(status), status >> 16
            if stop == SYSCALL_STOP:
                self.note(thread, info)
            group_stop = event == EVENT_STOP and stop not in (signal.SIGTRAP, 0)
            signalled = 0 if event or stop in (SYSCALL_STOP, signal.SIGTRAP) else stop
            ptrace(PTRACE_LISTEN if group_stop else PTRACE_SYSCALL, thread, 0, signalled)

    def note(self, thread: int, info: SyscallInfo) -> None:
        if not ptrace(PTRACE_GET_SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info)):
            return
        if info.op == ENTRY:
            number, first, second = info.values[:3]
            self.calls[thread] = (number, first & 0xFFFFFFFF, second & 0xFFFFFFFF)
        elif info.op == EXIT and (call := self.calls.pop(thread, None)) and info.values[0] == -errno.EPERM:
            self.refused[call] += 1


class Stopped(Exception):
    pass


def stop(*_: object) -> None:
    raise Stopped


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    tracer = Tracer(int(sys.argv[1]))
    print("tracing", flush=True)
    with contextlib.suppress(Stopped):
        tracer.run()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it may come just now, and what was seen would not be printed
    for (number, first, second), times in sorted(tracer.refused.items()):
        print(f"{number}({first:#x}, {second:#x}) {times}")


@contextlib.contextmanager
def refused_calls(pid: int) -> Iterator[list[str]]:
    """Afterwards the list has a line for each call that was refused meanwhile. Another process traces, because a process that
    traces its children cannot wait for their ends as usual."""
    lines: list[str] = []
    tracer = subprocess.Popen([sys.executable, __file__, str(pid)], stdout=subprocess.PIPE, text=True)
    try:
        assert tracer.stdout.readline() == "tracing\n", "the process cannot be traced"
        yield lines
    finally:
        tracer.terminate()
        lines += tracer.communicate()[0].splitlines()


if __name__ == "__main__":
    main()
