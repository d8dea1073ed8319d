# SPDX-License-Identifier: Apache-2.0
"""One measurement of bench/frames: a server, a load, and what runs beside them."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from machine import Cores, CpuPower, GpuPower, free_port, huge_files, huge_pages, words

START_S_MAX = 60
ENGINES = {
    "cpu": [],
    "cuda": ["--engine=cuda", "--on-gpu-error=exit"],
    "cuda-persistent": ["--engine=cuda", "--gpu-mode=persistent", "--on-gpu-error=exit"],
}
ERRORS = ("wrong", "refused", "out_of_memory")
TRIES_MAX = 3
TCP_KEYS = 1_000_000
INTERVAL_S = 0.1  # of round trips over time


@dataclass(frozen=True)
class Setup:
    """What a measurement varies."""

    engine: str = "cpu"
    server_threads: int = 1
    load_threads: int = 2  # each has a queue of the device
    burst: int = 1024  # --frames-burst
    depth: int = 0  # --frames-depth; 0: the server's choice
    window: int = 1024  # requests of a load thread that are not answered
    rate: float = 0  # requests/s; 0: closed loop
    keys: int = 1_000_000
    key_bytes: int = 16
    value_bytes: int = 2
    multiget: int = 1
    sets: float = 0
    hits: float = 1  # share of gets
    distribution: str = "uniform"


@dataclass(frozen=True)
class Beside:
    """What differs from a server of frames alone, with zero copy and huge pages."""

    server: str = "warpcached"  # or memcached
    transport: str = "frames"  # or udp: the kernel's sockets
    sizes: str = ""  # for warpcache-load; empty: those of the setup
    # zero-copy, copies: memif's, in huge pages; ordinary: copies, no huge pages; ring: DPDK's rings, which share all buffers
    buffers: str = "zero-copy"
    tcp_sets: float = 0  # sets/s by TCP, of other keys
    background: int = 0  # launches of a run of other work on the GPU; 0: none
    background_loops: int = 0
    over_time: bool = False  # round trips of each tenth of a second


class Failed(Exception):
    """A program has ended with an error, or does not start."""


@contextlib.contextmanager
def beside_it(command: list[str]) -> Iterator[dict]:
    """Runs a program meanwhile, and waits for its end. What it prints, an object of JSON, is there then."""
    printed: dict = {}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield printed
    finally:
        out, errors = process.communicate()
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)}: {errors[-2000:]}")
    printed.update(json.loads(out))


def stats(port: int) -> dict[str, float]:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"stats\r\n")
        text = b""
        while not text.endswith(b"END\r\n"):
            text += sock.recv(65536)
    return {name: float(number) for name, number in re.findall(r"STAT (frames_\w+) (\d+)\r\n", text.decode())}


def called(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return done.stdout


class Measurement:
    def __init__(self, arguments: argparse.Namespace, cores: Cores, setup: Setup, beside: Beside, folder: Path):
        self.arguments, self.cores, self.setup, self.beside = arguments, cores, setup, beside
        self.port, self.log = free_port(), folder / "log"
        self.ring = f"bench{os.getpid()}"
        self.memif = f"socket={folder}/memif,socket-abstract=no,rsize=10"
        self.program = lambda name: f"{arguments.programs}/{name}"

    # --- Server

    def frames(self) -> list[str]:
        setup = self.setup
        ring = self.beside.buffers == "ring"
        copies = "" if self.beside.buffers != "zero-copy" else "zero-copy=yes,"
        device = f"ring:{self.ring}" if ring else f"dpdk:net_memif0,role=client,{copies}{self.memif}"
        options = [f"--frames={device}", f"--frames-burst={setup.burst}"]
        options += [f"--frames-queues={setup.load_threads}", f"--frames-threads={setup.server_threads}"]
        if setup.depth != 0:
            options.append(f"--frames-depth={setup.depth}")
        return [*options, f"--frames-cpus={words(self.cores.server(setup.server_threads))}"]

    def server_command(self) -> list[str]:
        setup, beside = self.setup, self.beside
        address = ["-l", "127.0.0.1", "-p", str(self.port), "-m", "4096", "-u", "root"]
        if beside.transport == "udp":
            # The kernel's sockets, on the cores that the threads of frames would have.
            pinned = ["taskset", "-c", words(self.cores.server(setup.server_threads))]
            threads = ["-t", str(setup.server_threads), "-U", str(self.port)]
            own = ENGINES[setup.engine] if beside.server == "warpcached" else []
            program = self.program("warpcached") if beside.server == "warpcached" else self.arguments.memcached
            return [*pinned, program, *address, *threads, *own]
        sockets = ["-t", "1", "--udp-allow=10.0.0.0/8", *ENGINES[setup.engine]]
        return [self.program("warpcached"), *address, *sockets, *self.frames()]

    @contextlib.contextmanager
    def served(self) -> Iterator[subprocess.Popen]:
        command = self.server_command()
        with open(self.log, "w") as out:
            server = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + START_S_MAX
            while not self.listens():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise Failed(f"the server does not start: {' '.join(command)}: {self.log.read_text()}")
                time.sleep(0.05)
            yield server
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()

    def listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    # --- Load

    def load_command(self, pid: int) -> list[str]:
        setup, beside, seconds = self.setup, self.beside, self.arguments.seconds
        connections = min(64, setup.window)
        command = [self.program("warpcache-load"), f"127.0.0.1:{self.port}", "-q", "-t", str(setup.load_threads)]
        if beside.transport == "udp":
            command += ["--udp"]
        else:
            ring = self.beside.buffers == "ring"
            command += [f"--frames=ring:{self.ring}" if ring else f"--frames=dpdk:net_memif0,role=server,{self.memif}"]
            command += ["--verify-share", str(self.arguments.verify_share)]
        command += ["-c", str(connections * setup.load_threads), "-P", str(setup.window // connections)]
        command += ["--sizes", beside.sizes or f"fixed:{setup.key_bytes}:{setup.value_bytes}", "-d", setup.distribution]
        command += ["--timeout", "0.5", "--warm-up", "0.5", "-s", str(seconds), "--json", "-"]
        command += ["-k", str(setup.keys), "--sets", str(setup.sets), "-g", str(setup.multiget), "-r", str(setup.rate)]
        command += ["--server-pid", str(pid), "--fill-share", str(setup.hits)]
        if beside.over_time:
            command += ["--interval", str(INTERVAL_S)]
        return [*command, "--cpus", words(self.cores.load(setup.load_threads))]

    def others(self) -> list[int]:
        return self.cores.others(self.setup.server_threads, self.setup.load_threads)

    @contextlib.contextmanager
    def sets_by_tcp(self, found: dict) -> Iterator[None]:
        """Sets of other keys, from before the load begins until it has ended."""
        if self.beside.tcp_sets == 0:
            yield
            return
        command = [self.program("warpcache-load"), f"127.0.0.1:{self.port}", "-q", "--sets", "1", "--no-fill"]
        command += ["-c", "16", "-P", "64", "-r", str(self.beside.tcp_sets), "-k", str(TCP_KEYS), "--seed", "77"]
        command += ["--sizes", f"fixed:{self.setup.key_bytes}:{self.setup.value_bytes}", "-d", "uniform"]
        # As long as the measurement, which begins when the keys are stored.
        command += ["--warm-up", "1", "-s", str(self.arguments.seconds + 1), "--json", "-"]
        command += ["--cpus", words(self.others()[-1:])]
        with beside_it(command) as report:
            yield
        found["tcp_sets_per_s"] = round(report["requests_per_s"])
        found["tcp_set_p50_us"] = report["latency"]["p50_us"]
        found["tcp_set_p99_us"] = report["latency"]["p99_us"]

    @contextlib.contextmanager
    def background(self, found: dict) -> Iterator[None]:
        if self.beside.background == 0:
            yield
            return
        command = [self.program("warpcache-bench"), "background", "--launches", str(self.beside.background)]
        command += ["--loops", str(self.beside.background_loops), "--seconds", str(self.arguments.seconds + 2)]
        with beside_it(command) as report:
            yield
        found["background_run_ms"] = report["run_ms"]

    # --- Both

    def run(self) -> dict:
        with contextlib.ExitStack() as stack:
            if self.beside.buffers == "ordinary":
                stack.enter_context(huge_pages(0, exactly=True))
            if self.beside.buffers == "ring":
                stack.enter_context(huge_files())
            server = stack.enter_context(self.served())
            row = self.loaded(server.pid)
            if self.beside.transport == "frames":
                try:
                    counters = stats(self.port)
                except OSError as error:
                    server.wait(START_S_MAX)
                    raise Failed(f"the server has ended with {server.returncode}: {error}: {self.log.read_text()}") from error
                lost = ("receive_missed", "send_failed", "replies_dropped")
                row["lost_in_server"] = sum(counters[f"frames_{name}"] for name in lost)
                row["copied_bytes"] = counters["frames_copied_bytes"]
        return row

    def loaded(self, pid: int) -> dict:
        beside: dict = {}
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.sets_by_tcp(beside))
            stack.enter_context(self.background(beside))
            cpu = stack.enter_context(CpuPower())
            gpu = stack.enter_context(GpuPower(self.arguments.seconds)) if self.setup.engine != "cpu" else None
            report = json.loads(called(self.load_command(pid)))
        assert all(report[name] == 0 for name in ERRORS), report
        row = self.row_of(report) | beside
        if gpu is not None:
            row["gpu_watts"] = gpu.watts
        if cpu.watts is not None:
            row["cpu_watts"] = cpu.watts
        return row

    def row_of(self, report: dict) -> dict:
        latency = report["latency"]
        asked = report["requests"] + report["lost"] + report["unsent"]
        row = {
            "requests_per_s": round(report["requests_per_s"]),
            "keys_per_s": round(report["keys_read_per_s"]),
            "hit_ratio": round(report["hit_ratio"], 4),
            "loss": report["lost"] / asked,
            "unsent": report["unsent"] / asked,
            "late_p95_us": report.get("sent_late", {}).get("p95_us"),
            "mean_us": latency["mean_us"],
            **{f"p{q}_us": latency[f"p{q}_us"] for q in (50, 95, 99)},
            "server_cpu_us": round(report["server_cpu_us_per_request"], 4),
            "server_cores": round(report["server_cpu_s"] / report["seconds"], 2),
        }
        if "by_thread" in report:
            # Which thread lags, and whether its sends or its replies do.
            threads = report["by_thread"]
            row["late_p99_us_by_thread"] = [thread["sent_late"]["p99_us"] for thread in threads]
            row["p99_us_by_thread"] = [thread["latency"]["p99_us"] for thread in threads]
        if self.beside.over_time:
            row["over_time"] = report.get("intervals", [])
        return row


def measured(arguments: argparse.Namespace, cores: Cores, setup: Setup, beside: Beside) -> dict:
    """A row, without the setup. Ends the program if one of those that it needs fails again and again."""
    for left in reversed(range(TRIES_MAX)):
        try:
            with tempfile.TemporaryDirectory() as folder:
                return Measurement(arguments, cores, setup, beside, Path(folder)).run()
        except Failed as failure:
            # DPDK's memif now and then ends its process when the other side goes.
            print(failure, file=sys.stderr)
            if left == 0:
                sys.exit(1)
    raise AssertionError


def background_alone(arguments: argparse.Namespace) -> dict:
    """How many loops of background work take 30 ms in one launch, and how long its runs take then."""
    try:
        return json.loads(called([f"{arguments.programs}/warpcache-bench", "background", "--seconds", "1"]))
    except Failed as failure:
        sys.exit(str(failure))
