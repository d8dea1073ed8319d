# SPDX-License-Identifier: Apache-2.0
"""Huge pages for a test, and a file system of them. What was set up is given back."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")


def count(name: str) -> int:
    return int((PAGES / name).read_text())


def mounted() -> list[Path]:
    lines = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return [Path(words[1]) for words in lines if words[2] == "hugetlbfs"]


@contextlib.contextmanager
def file_system() -> Iterator[Path]:
    """The one that is mounted, or one for the test."""
    if found := mounted():
        yield found[0]
        return
    with tempfile.TemporaryDirectory(prefix="warpcache-test-huge-") as folder:
        command = ["mount", "-t", "hugetlbfs", "none", folder]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"no file system of huge pages can be mounted: {done.stderr.strip()}")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def none_reserved() -> Iterator[None]:
    """No test has huge_pages() meanwhile. DPDK that starts for another port would take them, or look for a file system that is gone."""
    if not PAGES.exists():
        yield
        return
    with open(PAGES / "nr_hugepages") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def huge_pages(megabytes: int) -> Iterator[Path]:
    """That many are free. No other test of this machine has some meanwhile. Returns the file system's folder.

    Take no more than a server of another port would need: it would take them instead.
    """
    if not PAGES.exists():
        pytest.skip("the kernel has no huge pages of 2 MB")
    with open(PAGES / "nr_hugepages") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A page that was in use when others were given back still counts, and goes when it is.
        present = count("nr_hugepages")
        before = present - count("surplus_hugepages")
        missing = megabytes // 2 - (count("free_hugepages") - count("resv_hugepages"))
        try:
            if missing > 0:
                with contextlib.suppress(OSError):
                    (PAGES / "nr_hugepages").write_text(str(present + missing))
            if count("free_hugepages") - count("resv_hugepages") < megabytes // 2:
                pytest.skip(f"there are no {megabytes} MB in huge pages, and none can be reserved")
            with file_system() as folder:
                yield folder
        finally:
            if missing > 0:
                with contextlib.suppress(OSError):
                    (PAGES / "nr_hugepages").write_text(str(before))
