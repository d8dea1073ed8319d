# SPDX-License-Identifier: Apache-2.0
"""Tables of a server behind Ethernet frames: bench/frames."""

from __future__ import annotations

from rendering.markdown import table
from rendering.registry import block
from rendering.rows import Rows, only, rows, source

FILE = "frames"
ENGINES = {"cpu": "CPU", "cuda": "CUDA, launches", "cuda-persistent": "CUDA, persistent"}


def millions(number: float) -> str:
    return f"{number / 1e6:.1f}"


def us(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def quantiles(row: dict) -> tuple[str, ...]:
    return tuple(us(row[f"p{q}_us"]) for q in (50, 95, 99))


def loss(row: dict) -> str:
    lost = row["loss"] + row["unsent"]
    return "" if lost == 0 else f"{100 * lost:.4f}%"


def rendered(head: tuple[str, ...], lines: list[tuple], found: Rows) -> str:
    return table(head, lines) + "\n\n" + source(found, FILE)


# What a measurement varies, of the fields of a row.
SETUP = (
    *("engine", "server_threads", "load_threads", "burst", "rate", "key_bytes", "value_bytes", "multiget", "sets", "hits"),
    *("distribution", "sizes", "buffers", "tcp_set_share", "background_launches", "persistent", "server", "transport", "frame_bytes"),
)


def newest(part: str, *names: str, **wanted: object) -> Rows:
    """The newest row of each setup, in the order in which the setups were first measured. `names`: further fields of a setup."""
    found = {tuple(str(row.get(name)) for name in (*SETUP, *names)): row for row in rows(FILE, part=part, **wanted)}
    return list(found.values())


def missing(part: str) -> str:
    """In the place of a table: the part has not run yet on a machine whose rows are kept."""
    return f"Not measured yet (`bench/frames/run {part}`)."


def asked(row: dict) -> str:
    return f"{row['rate'] / 1e6:g}" if row["rate"] else "most"


def bursts(row: dict) -> str:
    """--frames-burst, and --frames-depth where it was given."""
    return f"{row['burst']:,}" + (f" x {row['depth']}" if row["depth"] else "")


def watts(row: dict, name: str = "gpu_watts") -> str:
    return f"{row[name]:.0f}" if row.get(name) else ""


@block("frames-peak")
def peak() -> str:
    found = newest("peak", "depth")
    lines = [
        (
            ENGINES[row["engine"]],
            row["server_threads"],
            row["load_threads"],
            bursts(row),
            millions(row["requests_per_s"]),
            *quantiles(row),
            f"{row['server_cpu_us']:.3f}",
            f"{row['gpu_watts']:.0f}" if "gpu_watts" in row else "",
            row["commit"],
        )
        for row in found
    ]
    head = ("engine", "threads", "load", "burst", "M/s", "p50 us", "p95", "p99", "CPU us", "W", "commit")
    return rendered(head, lines, found)


@block("frames-rates")
def rates() -> str:
    found = newest("rates", "depth")
    lines = [
        (
            ENGINES[row["engine"]],
            bursts(row),
            f"{row['rate'] / 1e6:g}",
            millions(row["requests_per_s"]),
            *quantiles(row),
            loss(row),
            row["commit"],
        )
        for row in found
    ]
    return rendered(("engine", "burst", "M/s asked", "M/s", "p50 us", "p95", "p99", "loss", "commit"), lines, found)


def varied(part: str, title: str, name) -> str:
    """A line a variant, with a column for each engine."""
    found = newest(part)
    engines = [engine for engine in ENGINES if any(row["engine"] == engine for row in found)]
    variants = list(dict.fromkeys(name(row) for row in found))
    lines = []
    for variant in variants:
        cells = []
        for engine in engines:
            row = [row for row in found if name(row) == variant and row["engine"] == engine][-1]
            cells.append(millions(row["keys_per_s"] if part == "multiget" else row["requests_per_s"]))
        lines.append((variant, *cells))
    return rendered((title, *(ENGINES[engine] + ", M/s" for engine in engines)), lines, found)


@block("frames-keys")
def keys() -> str:
    return varied("keys", "bytes of a key", lambda row: row["key_bytes"])


@block("frames-values")
def values() -> str:
    return varied("values", "bytes of a value", lambda row: row["value_bytes"])


@block("frames-multiget")
def multiget() -> str:
    return varied("multiget", "keys a request", lambda row: row["multiget"])


def mixture(row: dict) -> str:
    if row["hits"] < 1:
        return f"{100 * row['hits']:.0f}% hits"
    if row["distribution"] != "uniform":
        return "Zipf 0.99"
    return f"{100 * row['sets']:g}% sets"


@block("frames-mixes")
def mixes() -> str:
    return varied("mixes", "requests", mixture)


@block("frames-power")
def power() -> str:
    """Figure 4 of MemcachedGPU: what a rate costs in cores and watts."""
    found = newest("power")
    if not found:
        return missing("power")
    lines = []
    for row in found:
        joules = f"{row['requests_per_s'] / row['gpu_watts'] / 1e3:,.0f}" if row.get("gpu_watts") else ""
        threads = f"{row['server_threads']} + {row['load_threads']}"
        numbers = (millions(row["requests_per_s"]), us(row["p95_us"]), loss(row), f"{row['server_cores']:.1f}", watts(row), joules)
        lines.append((ENGINES[row["engine"]], threads, asked(row), *numbers))
    head = ("engine", "threads, load's", "M/s asked", "M/s", "p95 us", "loss", "server's cores", "GPU, W", "thousand requests/J")
    return rendered(head, lines, found)


SIZES = {
    "fixed:16:2": "16",
    "keys:2:16=1,32=1": "16, 32 (1:1)",
    "keys:2:16=7,64=2,128=1": "16, 64, 128 (7:2:1)",
    "fixed:128:2": "128",
}


@block("frames-mixtures")
def mixtures() -> str:
    """Figure 5 of MemcachedGPU."""
    found = newest("mixtures")
    if not found:
        return missing("mixtures")
    lines = [
        (
            ENGINES[row["engine"]],
            SIZES.get(row["sizes"], row["sizes"]),
            f"{100 * row['hits']:.0f}%",
            asked(row),
            millions(row["requests_per_s"]),
            us(row["mean_us"]),
            *quantiles(row),
            loss(row),
        )
        for row in found
    ]
    head = ("engine", "bytes of keys", "hits", "M/s asked", "M/s", "mean us", "p50", "p95", "p99", "loss")
    return rendered(head, lines, found)


@block("frames-tcp-sets")
def tcp_sets() -> str:
    """Table 4 of MemcachedGPU: gets by frames, sets by TCP."""
    found = newest("tcp-sets")
    if not found:
        return missing("tcp-sets")
    lines = [
        (
            ENGINES[row["engine"]],
            f"{100 * row['tcp_set_share']:g}%",
            millions(row["requests_per_s"]),
            f"{row.get('tcp_sets_per_s', 0) / 1e3:,.0f}",
            us(row["p50_us"]),
            us(row["p95_us"]),
            loss(row),
            us(row["tcp_set_p50_us"]) if "tcp_set_p50_us" in row else "",
        )
        for row in found
    ]
    head = ("engine", "sets asked", "gets, M/s", "sets, k/s", "get p50 us", "get p95", "gets lost", "set p50 us")
    return rendered(head, lines, found)


@block("frames-background")
def background() -> str:
    """Figure 6 of MemcachedGPU: means of each tenth of a second."""
    found = newest("background")
    if not found:
        return missing("background")
    lines = []
    for row in found:
        means = sorted(moment["mean_us"] for moment in row["over_time"])
        launches = row["background_launches"] or "none"
        run = f"{row['background_run_ms']:.0f}" if "background_run_ms" in row else ""
        over_time = (us(means[0]), us(means[len(means) // 2]), us(means[-1])) if means else ("", "", "")
        lines.append((ENGINES[row["engine"]], launches, *over_time, us(row["p95_us"]), loss(row), run))
    head = ("engine", "launches", "least mean, us", "middle", "largest", "p95 us", "loss", "a run, ms")
    alone = sorted({f"{row['background_alone_ms']:.0f}" for row in found})
    return f"A run alone takes {' or '.join(alone)} ms.\n\n" + rendered(head, lines, found)


@block("frames-buffers")
def buffers() -> str:
    names = {"zero-copy": "shared, no copies", "copies": "copied by memif", "ordinary": "copied, no huge pages"}
    if not newest("buffers"):
        return missing("buffers")
    return varied("buffers", "buffers", lambda row: names[row["buffers"]])


@block("frames-ring")
def ring() -> str:
    names = {"zero-copy": "memif, no copies in the server", "ring": "DPDK's rings, no copies"}
    found = newest("ring")
    if not found:
        return missing("ring")
    lines = [
        (
            ENGINES[row["engine"]],
            names[row["buffers"]],
            asked(row),
            millions(row["requests_per_s"]),
            *quantiles(row),
            loss(row),
            f"{row['server_cpu_us']:.3f}",
        )
        for row in found
    ]
    return rendered(("engine", "between server and load", "M/s asked", "M/s", "p50 us", "p95", "p99", "loss", "CPU us"), lines, found)


@block("frames-yardsticks")
def yardsticks() -> str:
    """What the same cores carry at most, and warpcached in the same call: rows of one commit are of one call."""
    found = [row for part in ("floor", "testpmd") for row in rows(FILE, part=part) if "requests_per_s" in row]
    if not found:
        return missing("floor testpmd peak")
    calls = list(dict.fromkeys(row["commit"] for row in found))
    found += [row for row in rows(FILE, part="peak") if row["commit"] in calls]
    lines = []
    for row in found:
        match row["part"]:
            case "floor":
                name = "least server, " + ("GPU, persistent" if row["persistent"] else "CPU")
            case "testpmd":
                name = "testpmd, macswap"
            case _:
                name = "warpcached, " + ENGINES[row["engine"]]
        times = quantiles(row) if "p50_us" in row else ("",) * 3
        if not row.get("rate"):
            lines.append((row["commit"], row["server_threads"], row["load_threads"], name, millions(row["requests_per_s"]), *times))
    lines.sort(key=lambda line: (calls.index(line[0]), line[1]))
    return rendered(("commit", "threads", "load", "server", "M/s", "p50 us", "p95", "p99"), lines, found)


@block("frames-sockets")
def sockets() -> str:
    """Figure 4.9 of the dissertation: past the kernel, by threads."""
    found = newest("sockets")
    if not found:
        return missing("sockets")
    columns = (("memcached", "udp"), ("warpcached", "udp"), ("warpcached", "frames"))
    lines = []
    for threads in sorted({row["server_threads"] for row in found}):
        cells = []
        for server, transport in columns:
            row = next((r for r in found if (r["server_threads"], r["server"], r["transport"]) == (threads, server, transport)), None)
            cells.append("" if row is None else f"{row['requests_per_s'] / 1e6:.2f}")
        lines.append((threads, *cells))
    head = ("threads", "memcached, UDP sockets, M/s", "warpcached, UDP sockets, M/s", "warpcached, frames, M/s")
    return rendered(head, lines, found)


# --- For docs/papers.md


def rates_by_key() -> str:
    found = newest("keys", engine="cuda-persistent")
    return ", ".join(millions(row["requests_per_s"]) for row in found) + " M/s"


def at_13() -> str:
    row = rows(FILE, part="rates", engine="cuda-persistent", rate=13e6, burst=1024, depth=0)[-1]
    return f"p50 {us(row['p50_us'])} us, p95 {us(row['p95_us'])} us at 13 M/s"


def hit_shares() -> str:
    found = [only(newest("mixtures", engine="cuda-persistent", sizes="fixed:16:2", rate=0, hits=hits)) for hits in (1, 0.85)]
    return ", ".join(millions(row["requests_per_s"]) for row in found) + " M/s"


def tcp_sets_beside() -> str:
    row = rows(FILE, part="tcp-sets", engine="cuda-persistent", tcp_set_share=0.5)[-1]
    return f"{millions(row['requests_per_s'])} M/s, {millions(row['tcp_sets_per_s'])} M/s SET"


def power_at_peak() -> str:
    row = rows(FILE, part="power", engine="cuda-persistent", rate=0)[-1]
    return f"{row['requests_per_s'] / row['gpu_watts'] / 1e3:.0f} k/J, GPU alone"


def beside_other_work() -> str:
    found = [only(newest("background", engine="cuda-persistent", background_launches=count)) for count in (1, 16)]
    return ", ".join(f"{row['mean_us'] / 1e3:.1f}" for row in found) + " ms (1, 16)"


def past_the_kernel() -> str:
    found = [rows(FILE, part="sockets", server=server, transport=transport)[-1] for server, transport in (("memcached", "udp"), ("warpcached", "frames"))]
    return ", ".join(f"{row['requests_per_s'] / 1e6:.2f}" for row in found) + " M/s"


def best() -> str:
    found = max(rows(FILE, part="keys") + rows(FILE, part="peak"), key=lambda row: row["requests_per_s"])
    return f"{millions(found['requests_per_s'])} M/s"
