# SPDX-License-Identifier: Apache-2.0
"""Tables and values of the CUDA engine: bench/gpu."""

from __future__ import annotations

from rendering.markdown import microseconds, per_second, percent, table, text_table
from rendering.registry import block, plot, value
from rendering.rows import DataError, Rows, only, read, rows, source

# The commits whose rows are shown, by what was measured with each.
GETS, KEYS, SPLIT, SORTED, ABLATIONS = "2f447e9", "0e1620e", "5354cc4", "5d67f99", "e4e4718"
BATCHES = KEYS
MULTIGETS = "f942413"
FILE = "offline_gpu"


def study(commit: str, ending: str) -> dict:
    """The study of this commit whose options end so."""
    found = [row for row in rows(FILE, commit=commit) if row["options"].endswith(ending)]
    if len(found) != 1:
        raise DataError(f"{len(found)} studies of {commit} end in {ending}")
    return found[0]


def line(title: str, commit: str, ending: str, batch: int, **more: str) -> tuple[dict, tuple]:
    """The study, and a line of a table about one of its sizes of batches."""
    found = study(commit, ending)
    row = only(found["rows"], batch=batch)
    bus = found.get("bus_requests_per_s")
    across = bus and "--device-memory" not in found["options"]
    cells = (
        title,
        f"{batch:,}",
        f"{row['requests_per_s'] / 1e6:,.0f}" if row["requests_per_s"] >= 2e7 else f"{row['requests_per_s'] / 1e6:.1f}",
        f"{bus / 1e6:.0f}" if across else "",
        microseconds(row["batch_p50_us"]),
        microseconds(row["batch_p99_us"]),
        more.get("goal", ""),
        more.get("paper", ""),
    )
    return found, cells


HEAD = ("what", "batch", "M/s", "bus allows", "p50", "p99", "goal", "the paper")


def throughput(*lines: tuple[dict, tuple]) -> str:
    found = [study for study, _ in lines]
    return table(HEAD, [cells for _, cells in lines]) + "\n\n" + source(found, FILE)


SMALL = "--threads 2 --depth 10"


def gate_value(row: dict, name: str) -> str:
    return f"{row[name] / 1e6:,.1f} M/s" if row["measure"] == "requests_per_s" else f"{row[name]:.1f} us"


@block("gpu-gate")
def gpu_gate() -> str:
    """One build against an earlier one: `old` names its commit."""
    found = rows("gpu_gate")
    lines = []
    for row in found:
        values = (gate_value(row, "old_value"), gate_value(row, "new_value"), f"{row['ratio']:.2f}")
        lines.append((row["case"], f"{row['batch']:,}", row["old"], row["commit"], *values))
    head = ("what", "batch", "old", "new", "before", "after", "ratio")
    return table(head, lines) + "\n\n" + source(found, "gpu_gate")


@block("gpu-gets")
def gpu_gets() -> str:
    return throughput(
        line("GET, 16-byte keys, all hits", GETS, "--passes 10 --batches 65536", 65536, goal="430", paper="28.3"),
        line("the same", GETS, f"--batches 2048,4096 {SMALL}", 4096, goal="300"),
        line("the same", GETS, f"--batches 2048,4096 {SMALL}", 2048),
        line("85% hits, uniform keys", SORTED, "--zipf 0 --hits 0.85 --batches 4096,65536", 65536),
        line("85% hits, Zipf 0.99", SORTED, "--zipf 0.99 --hits 0.85 --batches 4096,65536", 65536),
        line("headers alone (`mn`)", KEYS, "--ping --batches 4096,65536", 65536, goal="450", paper="39"),
        line("the same", KEYS, "--ping --batches 4096,65536", 4096),
        line("GET, frames in GPU memory", KEYS, "4096,65536,262144 --threads 12", 65536, goal="4000"),
        line("the same", KEYS, "4096,65536,262144 --threads 12", 262144),
    )


@block("gpu-sets")
def gpu_sets() -> str:
    full, free = "--passes 10 --sets 1 --batches 4096,65536", "--passes 10 --sets 1 --batches 4096,65536 --memory 32768"
    zipf = "--zipf 0.99 --sets {} --batches 4096,16384,65536 --memory 32768"
    lines = []
    for batch in (65536, 4096):
        lines.append(line("SET, uniform keys, memory for all", GETS, free, batch, goal="100", paper="0.032"))
    for batch in (65536, 4096):
        lines.append(line("SET, uniform keys, full store", GETS, full, batch))
    for share, title in (("1", "SET, Zipf 0.99"), ("0.5", "half SET, Zipf 0.99"), ("0.05", "5% SET, Zipf 0.99")):
        for batch in (65536, 16384, 4096):
            goal = "250" if share == "0.05" and batch == 65536 else ""
            lines.append(line(title, GETS, zipf.format(share), batch, goal=goal))
    lines.append(line("5% SET, Zipf 0.99, ETC sizes", GETS, "--keys 1000000 --requests 1048576", 4096))
    return throughput(*lines)


@block("gpu-multigets")
def gpu_multigets() -> str:
    forms = (
        ("--value-size 32 --batches 4096,8192", 8192),
        ("--value-size 32 --batches 256,1024 --persistent --threads 2 --depth 4", 1024),
        ("--value-size 32 --batches 4096,8192 --device-memory", 8192),
    )
    found, lines = [], []
    for keys in (1, 8, 24, 40):
        cells = []
        for ending, batch in forms:
            one = study(MULTIGETS, f"--multiget {keys} --requests {(1 << 24) // keys} {ending}")
            found.append(one)
            rate = keys * only(one["rows"], batch=batch)["requests_per_s"]
            cells.append(f"{rate / 1e6:,.0f}")
        bus = found[-3]["bus_requests_per_s"]
        lines.append((keys, cells[0], f"{keys * bus / 1e6:,.0f}", *cells[1:]))
    head = ("keys a get; M keys/s", "launches, 8,192", "the bus allows", "persistent, 1,024", "frames in GPU memory")
    return table(head, lines) + "\n\n" + source(found, FILE)


@block("gpu-sizes")
def gpu_sizes() -> str:
    lines = []
    papers = {16: "13.0", 32: "11.1", 64: "8.7", 128: "6.0"}
    for size in (16, 32, 64, 128, 250):
        ending = f"--key-size {size} --batches 4096,65536"
        lines.append(line(f"GET, key of {size} B", KEYS, ending, 65536, paper=papers.get(size, "")))
    for size in (32, 256):
        lines.append(
            line(f"GET, value of {size} B", KEYS, f"--value-size {size} --batches 16384 --requests 8388608", 16384)
        )
    for size, ending in (
        (1024, f"--batches 1024,4096 {SMALL} --requests 8388608"),
        (2048, f"--batches 256,1024,4096 {SMALL} --keys 1000000 --requests 1048576"),
        (4096, f"--batches 256,1024,4096 {SMALL} --keys 1000000 --requests 1048576"),
    ):
        lines.append(line(f"GET, value of {size} B", KEYS, f"--value-size {size} {ending}", 1024))
    return throughput(*lines)


def latency_line(title: str, found: dict, batch: int, paper: str) -> tuple:
    row = only(found["rows"], batch=batch)
    times = (microseconds(row[f"batch_{name}_us"]) for name in ("mean", "p50", "p95", "p99", "max"))
    return (title, f"{batch:,}", per_second(row["requests_per_s"]) + "/s", *times, paper)


@block("gpu-latency")
def gpu_latency() -> str:
    alone = "--batches 1,16,256 --requests 65536 --threads 1"
    launch, persistent = (
        study(BATCHES, f"--passes 8 {alone}"),
        study(BATCHES, "--persistent --batches 1,16,256 --requests 65536 --threads 1"),
    )
    half = study(BATCHES, "--batches 2048,3072,4096 --threads 2 --depth 5 --requests 33554432")
    big = study(GETS, "--passes 10 --batches 65536")
    lines = [latency_line("one batch at a time, persistent kernel", persistent, batch, "") for batch in (1, 16, 256)]
    lines += [latency_line("one batch at a time, launches", launch, batch, "") for batch in (1, 16, 256)]
    lines += [latency_line("half of the peak rate", half, batch, "") for batch in (2048, 3072, 4096)]
    lines.append(latency_line("peak rate", big, 65536, "264 to 353 us"))
    head = ("GET, 16-byte keys", "batch", "requests", "mean", "p50", "p95", "p99", "longest", "the paper")
    return table(head, lines) + "\n\n" + source([launch, persistent, half, big], FILE)


@block("gpu-energy")
def gpu_energy() -> str:
    lines, found = [], []
    for title, ending, batch in (
        ("GET, 16-byte keys", "--passes 10 --batches 65536", 65536),
        ("GET, 16-byte keys", f"--batches 2048,4096 {SMALL}", 4096),
        ("SET, full store", "--passes 10 --sets 1 --batches 4096,65536", 65536),
        ("SET, full store", "--passes 10 --sets 1 --batches 4096,65536", 4096),
        ("5% SET, Zipf 0.99", "--zipf 0.99 --sets 0.05 --batches 4096,16384,65536 --memory 32768", 4096),
    ):
        found.append(study(GETS, ending))
        row = only(found[-1]["rows"], batch=batch)
        rate, joule = row["requests_per_s"] / 1e6, row["requests_per_j"] / 1e6
        lines.append((title, f"{batch:,}", f"{rate:.0f}", f"{row['watts']:.0f}", f"{joule:.2f}"))
    return table(("what", "batch", "M/s", "W, GPU alone", "M requests/J"), lines) + "\n\n" + source(found, FILE)


@block("gpu-sorted")
def gpu_sorted() -> str:
    lines, found = [], []
    for title, ending in (
        ("5% SET, Zipf 0.99", "--order {} --sets 0.05 --zipf 0.99 --batches 4096,65536"),
        ("keys of 16, 64, 128 B, 7:2:1", "--order {} --key-mixture 16:7,64:2,128:1 --batches 4096,65536"),
    ):
        order = "command" if "sets" in ending else "key-size"
        drawn, ordered = study(SORTED, ending.format("drawn")), study(SORTED, ending.format(order))
        found += [drawn, ordered]
        for batch in (4096, 65536):
            rates = [only(one["rows"], batch=batch)["requests_per_s"] / 1e6 for one in (drawn, ordered)]
            lines.append((title, f"{batch:,}", f"{rates[0]:.0f}", f"{rates[1]:.0f}", f"by {order.replace('-', ' ')}"))
    return table(("load", "batch", "M/s as drawn", "M/s sorted", "sorted"), lines) + "\n\n" + source(found, FILE)


def split_studies() -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {"work": [], "in place": [], "copy engines": []}
    for row in rows(FILE, commit=SPLIT):
        way = "copy engines" if "--copied 1 " in row["options"] else "in place"
        found["work" if "--device-memory" in row["options"] else way].append(row)
    return found


def split_times() -> dict[str, dict[int, float]]:
    """Median times of a single batch, by where its frames are, then by its size."""
    return {
        way: {row["batch"]: row["batch_p50_us"] for one in studies for row in one["rows"]}
        for way, studies in split_studies().items()
    }


@block("gpu-split")
def gpu_split() -> str:
    times = split_times()
    lines = []
    for batch, work in sorted(times["work"].items()):
        cells = [microseconds(work)]
        for way in ("in place", "copy engines"):
            whole = times[way][batch]
            cells += [microseconds(whole), percent(max(0.0, 1 - work / whole), 0)]
        lines.append((f"{batch:,}", *cells))
    head = ("batch", "GPU memory", "in place", "of it bus", "copy engines", "of it bus")
    return table(head, lines) + "\n\n" + source(rows(FILE, commit=SPLIT), FILE)


NIC = " --device-memory --nic"


def kind_of(one: dict) -> str:
    mode = "persistent" if "--persistent" in one["options"] else "launches"
    return f"{mode}, {one['offered_per_s'] / 1e6:.0f} M/s asked" if "offered_per_s" in one else mode


@block("gpu-nic")
def gpu_nic() -> str:
    """Where a network card puts frames: each study with its copy engines, and the same with frames in the host's memory."""
    lines, found = [], []
    for one in (row for row in read(FILE) if NIC in row["options"]):
        other = only(rows(FILE, commit=one["commit"], options=one["options"].replace(NIC, "")))
        found += [one, other]
        for row in one["rows"]:
            host = only(other["rows"], batch=row["batch"])
            cells = [f"{each['requests_per_s'] / 1e6:,.1f}" for each in (row, host)]
            for each in (row, host):
                cells += [microseconds(each["batch_p50_us"]), microseconds(each["batch_p99_us"])]
            lines.append((kind_of(one), f"{row['batch']:,}", *cells))
    if not lines:
        return "Not measured yet (`bench/gpu/run FOLDER nic`)."
    head = ("mode", "batch", "GPU memory, M/s", "host memory, M/s", "GPU memory, p50", "p99", "host memory, p50", "p99")
    return table(head, lines) + "\n\n" + source(found, FILE)


def background_rows() -> list[tuple[dict, dict]]:
    """Study and row of each measurement beside background work."""
    found = [one for one in rows(FILE, commit=GETS) if "--background" in one["options"]]
    return [(one, row) for one in found for row in one["rows"]]


def way_of(one: dict) -> str:
    if "--persistent" in one["options"]:
        return "persistent kernel"
    return "high priority" if "--high-priority" in one["options"] else "normal"


@block("gpu-background")
def gpu_background() -> str:
    lines = []
    for one, row in background_rows():
        cut, launches = row.get("background_cut"), row.get("background_launches")
        what = f"{launches} by {cut}" if launches else "none"
        if launches in (4, 64):
            continue
        run = (f"{row['background_ms']:.1f}", f"{row['background_alone_ms']:.1f}") if launches else ("", "")
        rate = f"{one['offered_per_s'] / 1e6:.0f}"
        times = (microseconds(row[f"batch_{name}_us"]) for name in ("mean", "p99", "max"))
        lines.append((f"{rate}; {row['batch']:,}", what, way_of(one), *times, *run))
    head = ("M/s; batch", "launches of background", "requests run", "mean", "p99", "longest", "background ms", "alone")
    return table(head, lines) + "\n\n" + source([one for one, _ in background_rows()], FILE)


def ablations() -> Rows:
    return [row for row in rows(FILE, commit=ABLATIONS) if row["options"].startswith("warpcache-ablation")]


@block("gpu-ablations")
def gpu_ablations() -> str:
    short, long = (only(ablations(), key_size=size)["rows"] for size in (16, 128))
    lines = []
    for a, b in zip(short, long, strict=True):
        if a["experiment"] == "launch":
            continue
        variant = f"{a['variant']}, {a['load']:.0%} full" if "load" in a else a["variant"]
        lines.append((a["experiment"], variant, *(f"{one['requests_per_s'] / 1e6:,.0f}" for one in (a, b))))
    head = ("experiment", "variant", "M/s, 16-byte keys", "M/s, 128-byte keys")
    return table(head, lines) + "\n\n" + source(ablations(), FILE)


@block("gpu-ablation-launch")
def gpu_ablation_launch() -> str:
    short, long = (only(ablations(), key_size=size)["rows"] for size in (16, 128))
    lines = [
        (a["variant"], f"{a['batch_us']:.1f}", f"{b['batch_us']:.1f}")
        for a, b in zip(short, long, strict=True)
        if a["experiment"] == "launch"
    ]
    return table(("us a batch of 256", "16-byte keys", "128-byte keys"), lines)


@block("gpu-value-sizes")
def gpu_value_sizes() -> str:
    found = rows("gpu_value_sizes")
    lines = []
    for row in found:
        one, cpu = row["gpu_us"], row["cpu_us"]
        piped = row["gpu_pipelined_us"]
        lines.append(
            (f"{row['bytes']:,} B", cpu["set"], one["set"], piped["set"], cpu["get"], one["get"], piped["get"])
        )
    head = ("us; value", "set: CPU engine", "GPU", "GPU, pipelined", "get: CPU engine", "GPU", "GPU, pipelined")
    return table(head, lines) + "\n\n" + source(found, "gpu_value_sizes")


@block("gpu-memory")
def gpu_memory() -> str:
    found = list(read("gpu_memory"))
    lines = [(row["what"], f"{row['mb']:,}") for row in found]
    return table(("GPU memory beside `-m`", "MB"), lines) + "\n\n" + source(found, "gpu_memory")


@block("gpu-depth")
def gpu_depth() -> str:
    found = list(read("gpu_sockets"))
    lines = []
    for row in found:
        _, connections, _, pipelined = row["load"].split()
        for number in (1, 2, 3, 4):
            one = row["servers"][f"depth-{number}"]
            million = f"{one['requests_per_s'] / 1e6:.2f}"
            cells = (million, f"{one['server_cpu_us']:.2f}", f"{one['p50_us']:.0f}", f"{one['p99_us']:.0f}")
            lines.append((f"{connections} connections, {pipelined} at a time", number, *cells))
    head = ("load", "batches under way", "M/s", "server CPU us", "p50 us", "p99 us")
    return table(head, lines) + "\n\n" + source(found, "gpu_sockets")


@block("gpu-tests")
def gpu_tests() -> str:
    found = list(read("gpu_tests"))
    lines = [(row["what"], f"`{row['command']}`", row["result"], f"{row['commit']}, {row['date']}") for row in found]
    text = "Rows, with machines: [gpu_tests.jsonl]({root}bench/results/gpu_tests.jsonl)"
    return text_table(("what", "`tests/gpu/run FOLDER` ...", "result", "commit"), lines) + "\n\n" + text


def million_per_second(commit: str, ending: str, batch: int) -> str:
    return f"{only(study(commit, ending)['rows'], batch=batch)['requests_per_s'] / 1e6:.0f}"


@value("gpu.gets")
def best_gets() -> str:
    return million_per_second(GETS, "--passes 10 --batches 65536", 65536) + " M gets/s"


@value("gpu.sets")
def best_sets() -> str:
    return million_per_second(GETS, "--passes 10 --sets 1 --batches 4096,65536 --memory 32768", 65536) + " M sets/s"


plot("offline-gpu", lambda: [row for row in rows(FILE, commit=BATCHES) if "options" in row], "gpu", "batches")
plot("split-gpu", lambda: rows(FILE, commit=SPLIT), "gpu", "split")
plot(
    "consolidation-gpu",
    lambda: [one for one in rows(FILE, commit=GETS) if "--background" in one["options"]],
    "gpu",
    "background",
)
