#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run of tests has left on the machine.

    left_behind.py before FOLDER    writes down what is there, into FOLDER/before.json
    left_behind.py after FOLDER     prints what has come since and stays; the exit status is 1 if there is anything

FOLDER is the run's own temporary folder: its tests have it as $TMPDIR. What lies there afterwards is left, but for `kept*`, which
pytest looks after. So are processes that have it in their environment, and what has a name of ours in shared memory and among the
folders of DPDK's, and huge pages. Other runs may be under way: what goes within some seconds is theirs. Interfaces are not looked
for: tests make them in namespaces of their own, which go with the processes.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import time
from pathlib import Path

PATIENCE_S = 10.0
PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
SHARED_MEMORY = Path("/dev/shm")
DPDK = Path("/var/run/dpdk")
BEFORE = "before.json"
KEPT = "kept"
OURS = "warpcache"  # the names of what tests make outside of their folder begin so
# UCX makes such a file and unlinks it at once: one stays if the process is killed in between, as tests do at any time.
UCX_FILE = re.compile(r"ucx_shm_posix_[0-9a-f]+")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def huge_pages() -> int:
    """As long as no test has some: testing/harness/huge_pages.py."""
    if not PAGES.exists():
        return 0
    with open(PAGES) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        return int(file.read())


def is_alive(name: str) -> bool:
    """Whether the process whose number a name ends with is there."""
    number = re.search(r"(\d+)$", name)
    return number is not None and Path(f"/proc/{number[1]}").exists()


def dpdk_folders() -> list[str]:
    """Of our processes that have ended."""
    return [name for name in names(DPDK) if name.startswith(OURS) and not is_alive(name)]


def is_mapped(path: Path) -> bool:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if str(path) in maps.read_text():
                return True
        except OSError:
            continue
    return False


def shared_memory(begun: float) -> list[str]:
    """What we have made since and no process has, without UCX's files of killed processes, which are removed."""
    found = []
    for name in names(SHARED_MEMORY):
        path = SHARED_MEMORY / name
        try:
            if path.lstat().st_ctime < begun or path.lstat().st_uid != os.getuid():
                continue
            if not (name.startswith(OURS) or UCX_FILE.fullmatch(name)) or is_mapped(path):
                continue
            if UCX_FILE.fullmatch(name):
                path.unlink()
                continue
        except OSError:
            continue
        found.append(name)
    return found


def ancestors() -> set[int]:
    found, process = set(), os.getpid()
    while process > 1:
        found.add(process)
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return found


def processes(folder: Path) -> list[str]:
    """Those that were started with the folder in their environment, and run."""
    ours, own = f"TMPDIR={folder}".encode(), ancestors()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) not in own and ours in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if words:  # a zombie has none
                    found.append(f"{process.name}: {words[:200]}")
        except OSError:
            continue
    return found


def before(folder: Path) -> None:
    state = {"begun": time.time(), "huge pages": huge_pages(), "DPDK": dpdk_folders()}
    (folder / BEFORE).write_text(json.dumps(state))


def left(folder: Path) -> list[str]:
    state = json.loads((folder / BEFORE).read_text())
    found = [f"{folder}/{name}" for name in names(folder) if name != BEFORE and not name.startswith(KEPT)]
    found += [f"process {text}" for text in processes(folder)]
    found += [f"{SHARED_MEMORY}/{name}" for name in shared_memory(state["begun"])]
    found += [f"{DPDK}/{name}" for name in dpdk_folders() if name not in state["DPDK"]]
    pages = huge_pages()
    if pages > state["huge pages"]:
        found.append(f"{pages - state['huge pages']} huge pages")
    return found


def after(folder: Path) -> int:
    deadline = time.monotonic() + PATIENCE_S
    stays = left(folder)
    while stays and time.monotonic() < deadline:
        time.sleep(0.5)
        still = left(folder)
        stays = [what for what in stays if what in still]
    for what in stays:
        print(f"left behind: {what}")
    return 1 if stays else 0


def main(words: list[str]) -> int:
    if len(words) != 2 or words[0] not in ("before", "after"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(words[1])
    if words[0] == "before":
        before(folder)
        return 0
    return after(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
