# SPDX-License-Identifier: Apache-2.0
"""Measures servers interleaved: a fresh process for every result, pinned to other cores than the load."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.servers import Target, start_server
from workloads import Workload


class LoadError(Exception):
    """The load generator ended with an error: wrong values, refused requests, a lost server."""


@dataclass(frozen=True)
class Setting:
    """The settings that all measurements of a run share."""

    megabytes: int
    threads: int
    load_threads: int
    server_cpus: frozenset[int]
    load_cpus: frozenset[int]
    seconds: float
    warm_up_s: float
    generator: Path
    connections_max: int = 4096
    timeout_s: float = 60  # of one measurement, filling the server included


def split_cpus(threads: int, load_threads: int) -> tuple[frozenset[int], frozenset[int]]:
    """CPUs for the server and for the load: different ones if there are enough."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < threads + load_threads:
        return frozenset(cpus), frozenset(cpus)
    return frozenset(cpus[:threads]), frozenset(cpus[threads : threads + load_threads])


def measure(target: Target, workload: Workload, setting: Setting, rate: float | None) -> dict:
    """One result of one server, as a flat dict."""
    before = os.sched_getaffinity(0)
    options = ["-m", str(setting.megabytes), "-t", str(setting.threads)]
    options += ["-c", str(setting.connections_max)]
    try:
        os.sched_setaffinity(0, setting.server_cpus)  # the server inherits it
        server = start_server(target, options, udp=workload.udp)
        try:
            os.sched_setaffinity(0, setting.load_cpus)
            command = [str(setting.generator), f"{server.host}:{server.port}", *workload.arguments]
            command += ["--threads", str(min(setting.load_threads, workload.connections))]
            command += ["--seconds", str(setting.seconds), "--warm-up", str(setting.warm_up_s)]
            command += ["--server-pid", str(server.pid), "--quiet", "--json", "-"]
            if workload.floor_goal:
                command.append("--no-verify")  # the least server's values are all the same
            if rate is not None:
                command += ["--rate", f"{rate:.0f}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=setting.timeout_s)
        finally:
            server.stop()
    finally:
        os.sched_setaffinity(0, before)
    if done.returncode != 0:
        raise LoadError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return figures(target, workload, json.loads(done.stdout), rate)


def figures(target: Target, workload: Workload, report: dict, rate: float | None) -> dict:
    latency = report["latency"]
    return {
        "measure": workload.name,
        "server": target.name,
        "rate": rate and round(rate),
        "requests_per_s": round(report["requests_per_s"]),
        "cpu_us_per_key": round(report["server_cpu_us_per_request"] / workload.keys, 4),
        "server_cpu": round(report["server_cpu_s"] / report["seconds"], 3),
        "generator_cpu": round(report["generator_cpu_s"] / report["seconds"], 3),
        "p50_us": latency["p50_us"],
        "p99_us": latency["p99_us"],
        "p999_us": latency["p999_us"],
        "hit_ratio": round(report["hit_ratio"], 5),
        "lost": report["lost"],
        "unsent": report["unsent"],
        "sent_late_p99_us": report.get("sent_late", {}).get("p99_us"),
        "resident_mib": round(report["server_resident_kib"] / 1024, 1),
    }
