# SPDX-License-Identifier: Apache-2.0
"""What bench/frames needs of the machine: huge pages, CPUs, and meters of power."""

from __future__ import annotations

import contextlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HUGE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
HUGE_MEGABYTES = 6144
RAPL = Path("/sys/class/powercap")


@contextlib.contextmanager
def huge_pages(megabytes: int = HUGE_MEGABYTES, exactly: bool = False) -> Iterator[None]:
    """At least this number of megabytes, or exactly that; afterwards as many pages as before."""
    before = HUGE_PAGES.read_text()
    if exactly or int(before) < megabytes // 2:
        HUGE_PAGES.write_text(str(megabytes // 2))
    try:
        yield
    finally:
        HUGE_PAGES.write_text(before)


@contextlib.contextmanager
def huge_files() -> Iterator[None]:
    """A file system of huge pages, where DPDK's primary process has memory that a secondary one shares."""
    if any(line.split()[2] == "hugetlbfs" for line in Path("/proc/mounts").read_text().splitlines()):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="warpcache-huge-") as folder:
        subprocess.run(["mount", "-t", "hugetlbfs", "none", folder], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def gpu_name() -> str:
    if shutil.which("nvidia-smi") is None:
        return "no GPU"
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


class GpuPower:
    """Watts of the GPU during the last `seconds` before its end, by nvidia-smi."""

    PERIOD_MS = 100

    def __init__(self, seconds: float):
        self.samples = max(1, int(seconds * 1000 / self.PERIOD_MS) - 1)
        self.watts: float | None = None

    def __enter__(self):
        command = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits", "-lms", str(self.PERIOD_MS)]
        self.process = None
        if shutil.which("nvidia-smi") is not None:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        if self.process is None:
            return
        self.process.terminate()
        text = self.process.stdout.read()
        self.process.wait()
        watts = [float(line) for line in text.split() if line.replace(".", "").isdigit()][-self.samples :]
        self.watts = round(statistics.mean(watts), 1) if watts else None


class CpuPower:
    """Watts of the processors while it is entered, by RAPL: none where the machine does not show them."""

    def __init__(self):
        self.meters = [path for path in RAPL.glob("intel-rapl:?/energy_uj") if path.exists()]
        self.watts: float | None = None

    def _joules(self) -> float:
        return sum(int(path.read_text()) for path in self.meters) / 1e6

    def __enter__(self):
        self.begin = (self._joules(), time.monotonic())
        return self

    def __exit__(self, *_):
        joules, seconds = self._joules() - self.begin[0], time.monotonic() - self.begin[1]
        # The counter starts anew now and then.
        self.watts = round(joules / seconds, 1) if joules > 0 else None


class Cores:
    """Each thread of the server's frames and of the load has a core of its own: the server the first ones after the one
    that all else runs on, the load the last."""

    def __init__(self, cpus: list[int]):
        self.cpus = cpus

    def server(self, count: int) -> list[int]:
        return self.cpus[1 : 1 + count] if len(self.cpus) > count + 1 else self.cpus[:count]

    def load(self, count: int) -> list[int]:
        return self.cpus[-count:]

    def others(self, server: int, load: int) -> list[int]:
        """Those that neither has, at least one."""
        used = {*self.server(server), *self.load(load)}
        return [cpu for cpu in self.cpus if cpu not in used] or self.cpus[:1]


def words(cpus: list[int]) -> str:
    return ",".join(map(str, cpus))
