# SPDX-License-Identifier: Apache-2.0
"""Tables of active messages beside sockets (bench/ucx)."""

from __future__ import annotations

from rendering.markdown import per_second, table, three
from rendering.registry import block
from rendering.rows import Rows, only, pick, rows, source

FILE = "ucx"
WAYS = ("memcached tcp", "memcached unix", "tcp", "unix", "ucx tcp", "ucx shm")
OPERATIONS = ("get", "set")
MIXES = ("10:90", "1:1")
CORES = ("16", "2")  # of the two machines


def of_machine(cores: str) -> Rows:
    return [row for row in rows(FILE) if f", {cores} cores" in row["machine"]]


def timed(cores: str) -> Rows:
    return [row for row in of_machine(cores) if "bytes" in row]


def quiet() -> Rows:
    """Of the machine with 16 processors; nobody else used it."""
    return timed("16")


def two_cores() -> Rows:
    return timed("2")


def latencies(found: Rows, operations: tuple[str, ...]) -> str:
    found = [row for row in found if row["clients"] == 1 and row.get("depth", 1) == 1 and row["operation"] in operations]
    lines = [
        (f"{row['operation']}, {row['bytes']:,} B", *(cell(only(found, **key(row), way=way)) for way in WAYS))
        for row in found
        if row["way"] == WAYS[0]
    ]
    return table(["p50 (best), us", *WAYS], lines) + "\n\n" + source(found, FILE)


def key(row: dict) -> dict:
    return {name: row[name] for name in ("operation", "bytes", "clients", "depth") if name in row}


def cell(row: dict) -> str:
    return f"{three(row['p50_us'])} ({three(row['best_p50_us'])})"


@block("ucx-latency")
def latency() -> str:
    return latencies(quiet(), OPERATIONS)


@block("ucx-latency-two-cores")
def latency_two_cores() -> str:
    return latencies(two_cores(), OPERATIONS)


@block("ucx-mixes")
def mixes() -> str:
    return latencies(quiet(), MIXES)


def one(operation: str, size: int, way: str) -> dict:
    return only(quiet(), clients=1, depth=1, operation=operation, bytes=size, way=way)


def gain() -> str:
    """Of a small get."""
    times = one("get", 4, "tcp")["p50_us"] / one("get", 4, "ucx shm")["p50_us"]
    return f"shm {times:.0f} times below TCP"


def get_4k() -> str:
    memory, tcp = (one("get", 4096, way)["p50_us"] for way in ("ucx shm", "ucx tcp"))
    return f"shm {three(memory)}, TCP {three(tcp)} us"


def mixed() -> str:
    times = [one(mix, 4, "tcp")["p50_us"] / one(mix, 4, "ucx shm")["p50_us"] for mix in MIXES]
    return f"shm {min(times):.0f} times below TCP"


def best_rate() -> str:
    row = only(quiet(), clients=16, depth=1, operation="get", bytes=4, way="ucx shm")
    return f"shm {row['rate'] / 1e6:.1f} M/s"


def rates(found: Rows) -> str:
    found = [row for row in found if row["clients"] > 1 or row.get("depth", 1) > 1]
    lines = [
        (name_of(row), *(per_second(only(found, **key(row), way=way)["rate"]) for way in WAYS))
        for row in found
        if row["way"] == WAYS[0]
    ]
    return table(["gets/s", *WAYS], lines) + "\n\n" + source(found, FILE)


def name_of(row: dict) -> str:
    clients = "1 client" if row["clients"] == 1 else f"{row['clients']} clients"
    packed = f", {row['depth']} packed" if row.get("depth", 1) > 1 else ""
    return f"{clients}, {row['bytes']:,} B{packed}"


@block("ucx-rate")
def rate() -> str:
    return rates(quiet())


@block("ucx-rate-two-cores")
def rate_two_cores() -> str:
    return rates(two_cores())


@block("ucx-cpu")
def processor_time() -> str:
    found = quiet()
    wanted = [(1, operation, size, 1) for size in (4, 4096, 524288) for operation in OPERATIONS]
    wanted += [(16, "get", size, 1) for size in (4, 4096)] + [(16, "get", 4, 16)]
    lines = []
    for clients, operation, size, depth in wanted:
        chosen = pick(found, clients=clients, operation=operation, bytes=size, depth=depth)
        cells = [only(chosen, way=way) for way in WAYS]
        name = f"{operation}, {size:,} B" if clients == 1 else f"{clients} clients, {size:,} B" + (", packed" if depth > 1 else "")
        lines.append((name, *(f"{three(row['client_cpu_us'])} + {three(row['server_cpu_us'])}" for row in cells)))
    return table(["client + server, us a request", *WAYS], lines) + "\n\n" + source(found, FILE)


@block("ucx-memory")
def memory() -> str:
    found = [row for row in of_machine("16") if "held" in row]
    lines = []
    for row in found:
        if row["way"] != "ucx shm":
            continue
        count, processes = row["held"], row["processes"]
        name = f"{count:,} of one process" if processes == 1 else f"{count:,} processes"
        of_ways = [pick(found, way=way, held=count, processes=processes) for way in WAYS]
        lines.append((name, *(held(some[0], count) if some else "" for some in of_ways)))
    return table(["clients: server (client), KB each", *WAYS], lines) + "\n\n" + source(found, FILE)


def held(row: dict, count: int) -> str:
    server = three(row["server_bytes"] / 1024)
    return f"{server} ({three(row['client_bytes'] / 1024)})" if "client_bytes" in row else server


def ratios(over: str, under: str, digits: int) -> str:
    """Of the best rounds' latencies, by size."""
    parts = [(f"{operation}, {name} processors", operation, timed(name)) for name in CORES for operation in OPERATIONS]
    sizes = sorted({row["bytes"] for row in quiet() if row["operation"] == "get"})
    lines = [
        (f"{size:,} B", *(f"{best(found, operation, size, over) / best(found, operation, size, under):.{digits}f}" for _, operation, found in parts))
        for size in sizes
    ]
    return table([f"{over} / {under}", *(name for name, _, _ in parts)], lines) + "\n\n" + source(quiet() + two_cores(), FILE)


def best(found: Rows, operation: str, size: int, way: str) -> float:
    chosen = [row for row in found if row.get("depth", 1) == 1]
    return only(chosen, clients=1, operation=operation, bytes=size, way=way)["best_p50_us"]


@block("ucx-goals")
def goals() -> str:
    return ratios("tcp", "ucx shm", 1)


@block("ucx-tcp-goals")
def tcp_goals() -> str:
    return ratios("ucx tcp", "tcp", 2)
