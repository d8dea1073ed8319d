# SPDX-License-Identifier: Apache-2.0
"""DPDK's own echo over memif: testpmd that swaps addresses (macswap), and testpmd that generates frames (flowgen).

Its least work on each side is a yardstick for a server on the same cores. Each pair of cores has an interface of its own.
"""

from __future__ import annotations

import contextlib
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from machine import Cores

FRAME_BYTES = 72  # a GET of a key of 16 bytes
FRAMES = 16384  # buffers of an interface
START_S_MAX = 60
END_S_MAX = 20
RATE = re.compile(r"^ *Rx-pps: +(\d+)", re.MULTILINE)


def command(program: str, role: str, cpus: list[int], folder: Path) -> list[str]:
    """The server is memif's client, as warpcached is: its buffers are those that frames are copied to and from."""
    is_server, pairs = role == "client", len(cpus) - 1
    lcores = ",".join(f"{number}@{cpu}" for number, cpu in enumerate(cpus))
    words = [program, "--lcores", lcores, "--main-lcore=0", "-m", str(128 + 64 * pairs), "--in-memory", "--single-file-segments"]
    words += ["--no-pci", "--iova-mode=va", "--no-telemetry", "--log-level=*:error"]
    for number in range(pairs):
        device = f"net_memif{number},role={role},id={number},socket={folder}/memif,socket-abstract=no,rsize=11"
        words.append(f"--vdev={device}{',zero-copy=yes' if is_server else ''}")
    words += ["--", "--auto-start", "--stats-period=1", "--disable-link-check", "--port-topology=loop"]
    words += [f"--nb-cores={pairs}", f"--total-num-mbufs={FRAMES * pairs}", f"--forward-mode={'macswap' if is_server else 'flowgen'}"]
    return words if is_server else [*words, f"--txpkts={FRAME_BYTES}"]


def start(words: list[str], log: Path) -> subprocess.Popen:
    with open(log, "w") as out:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)


def end(process: subprocess.Popen) -> None:
    """Of two memifs the second one to go may end by a signal: DPDK's driver does not bear its peer's end."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], *running: tuple[subprocess.Popen, Path]) -> None:
    """Raises OSError if a program ends before, or nothing happens for a long time."""
    deadline = time.monotonic() + START_S_MAX
    while not condition():
        for process, log in running:
            if process.poll() is not None or time.monotonic() > deadline:
                raise OSError(f"testpmd does not run ({process.poll()}): {log.read_text()[-2000:]}")
        time.sleep(0.05)


def rates_of(text: str, ports: int) -> list[int]:
    """Frames/s that have come back to all ports, for each second of testpmd's since both sides are connected."""
    seconds = text.split("Port statistics")[1:]
    found = [[int(rate) for rate in RATE.findall(second)] for second in seconds]
    return [sum(rates) for rates in found if len(rates) == ports and sum(rates) > 0][1:]


def echoed(program: str, cores: Cores, pairs: int, seconds: float, folder: Path) -> dict:
    """The median of frames/s that come back, with `pairs` cores on each side. Raises OSError if testpmd does not run."""
    rest = cores.others(pairs, pairs)[0]
    generator_log, server_log = folder / "generator", folder / "server"
    with contextlib.ExitStack() as stack:
        generator = start(command(program, "server", [rest, *cores.load(pairs)], folder), generator_log)
        stack.callback(end, generator)
        wait_until((folder / "memif").exists, (generator, generator_log))
        server = start(command(program, "client", [rest, *cores.server(pairs)], folder), server_log)
        stack.callback(end, server)
        both = ((generator, generator_log), (server, server_log))
        wait_until(lambda: bool(rates_of(generator_log.read_text(), pairs)), *both)
        time.sleep(seconds)
        rates = rates_of(generator_log.read_text(), pairs)
    return {"requests_per_s": round(statistics.median(rates)), "slowest": min(rates), "fastest": max(rates)}
