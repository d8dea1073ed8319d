# SPDX-License-Identifier: Apache-2.0
"""Programs that read statistics: Prometheus's memcached exporter and Debian's memcached-tool."""

import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest
from harness.patience import PATIENCE_S
from harness.servers import free_port

from clients.support import dialogue, spec, stats

MEMCACHED_TOOL = shutil.which("memcached-tool") or "/usr/share/memcached/scripts/memcached-tool"
EXPORTER = shutil.which("prometheus-memcached-exporter") or shutil.which("memcached_exporter")

# What the exporter (prometheus/memcached_exporter, pkg/exporter/exporter.go) reads, by the
# command it reads it from. Statistics of extstore and of memcached's proxy are read only where
# those run, hence are not here.
COUNTERS = """
    get_hits get_misses delete_hits delete_misses incr_hits incr_misses decr_hits decr_misses
    cas_hits cas_misses cas_badval touch_hits touch_misses cmd_flush cmd_set uptime
    total_items bytes_read bytes_written total_connections rejected_connections conn_yields
    listen_disabled_num evictions reclaimed store_too_large store_no_memory lru_crawler_starts
    direct_reclaims crawler_items_checked crawler_reclaimed moves_to_cold moves_to_warm
    moves_within_lru
""".split()
GAUGES = """
    time bytes limit_maxbytes curr_items curr_connections accepting_conns
""".split()
TIMES = ["rusage_user", "rusage_system"]
ITEM_NUMBERS = """
    number age hits_to_hot hits_to_warm hits_to_cold hits_to_temp crawler_reclaimed evicted
    evicted_nonzero evicted_time evicted_unfetched expired_unfetched outofmemory reclaimed
    tailrepairs mem_requested moves_to_cold moves_to_warm moves_within_lru number_hot number_warm
    number_cold age_hot age_warm
""".split()
SLAB_NUMBERS = """
    get_hits delete_hits incr_hits decr_hits cas_hits touch_hits cas_badval cmd_set chunk_size
    chunks_per_page total_pages total_chunks used_chunks free_chunks free_chunks_end
""".split()
SETTING_NUMBERS = """
    maxconns lru_crawler_sleep lru_crawler_tocrawl hot_lru_pct warm_lru_pct hot_max_factor
    warm_max_factor
""".split()
SETTING_FLAGS = ["lru_crawler", "lru_maintainer_thread"]


def traffic(server):
    """Commands whose counts the tests know."""
    dialogue(
        server,
        b"set a 0 0 1\r\n1\r\nset b 0 100 3\r\nxyz\r\nget a b c\r\nget c\r\n"
        b"incr a 1\r\nincr c 1\r\ndecr a 1\r\ndecr c 1\r\ntouch a 100\r\ntouch c 1\r\n"
        b"cas a 0 0 1 1\r\n1\r\ncas c 0 0 1 1\r\n1\r\ndelete b\r\ndelete b\r\nversion\r\nmn\r\n",
        b"MN\r\n",
    )


EXPECTED_COUNTS = {
    "get_hits": 2, "get_misses": 2, "incr_hits": 1, "incr_misses": 1, "decr_hits": 1,
    "decr_misses": 1, "touch_hits": 1, "touch_misses": 1, "cas_hits": 0, "cas_misses": 1,
    "cas_badval": 1, "delete_hits": 1, "delete_misses": 1,
}  # fmt: skip


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def unique(pairs):
    values = dict(pairs)
    assert len(values) == len(pairs), "a statistic was sent twice"
    return values


def by_class(pairs, pattern):
    """The statistics of each class, as `stats items` and `stats slabs` name them."""
    classes = {}
    for name, value in pairs:
        if match := re.fullmatch(pattern, name):
            classes.setdefault(int(match[1]), {})[match[2]] = value
    return classes


def test_general_statistics(server):
    traffic(server)
    asked = time.time()
    values = unique(stats(server))
    answered = time.time()
    for name in COUNTERS + GAUGES:
        assert re.fullmatch(r"\d+", values.get(name, "absent")), f"{name}: {values.get(name)}"
    for name in TIMES:
        # Read as two whole numbers, the second in microseconds.
        assert re.fullmatch(r"\d+\.\d{6}", values.get(name, "absent")), f"{name}"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", values["version"])
    assert {name: int(values[name]) for name in EXPECTED_COUNTS} == EXPECTED_COUNTS
    assert int(values["cmd_set"]) == 4  # Swaps count as sets, which the exporter relies on.
    assert int(values["curr_items"]) >= 1 and int(values["accepting_conns"]) == 1
    assert asked - 2 <= int(values["time"]) <= answered + 2


def test_counters_only_grow(server):
    traffic(server)
    before = unique(stats(server))
    traffic(server)
    after = unique(stats(server))
    for name in COUNTERS:
        assert int(after[name]) >= int(before[name]), name
    for name, count in EXPECTED_COUNTS.items():
        assert int(after[name]) - int(before[name]) == count, name
    assert int(after["bytes_read"]) > int(before["bytes_read"])
    assert int(after["bytes_written"]) > int(before["bytes_written"])


def test_statistics_of_items(server):
    traffic(server)
    classes = by_class(stats(server, "items"), r"items:(\d+):(\w+)")
    assert classes
    for number, values in classes.items():
        for name in ITEM_NUMBERS:
            assert is_number(values.get(name, "absent")), f"items:{number}:{name}"
    assert sum(int(values["number"]) for values in classes.values()) >= 1


def test_statistics_of_slabs(server):
    traffic(server)
    pairs = stats(server, "slabs")
    classes = by_class(pairs, r"(\d+):(\w+)")
    assert classes
    for number, values in classes.items():
        for name in SLAB_NUMBERS:
            assert is_number(values.get(name, "absent")), f"{number}:{name}"
        assert int(values["used_chunks"]) <= int(values["total_chunks"])
    values = dict(pairs)
    assert int(values["active_slabs"]) == len(classes)
    # The exporter takes the memory in use from here; it merges this with the general statistics.
    assert int(values["total_malloced"]) > 0


def test_settings(server):
    values = unique(stats(server, "settings"))
    for name in SETTING_NUMBERS:
        assert is_number(values.get(name, "absent")), f"{name}: {values.get(name)}"
    for name in SETTING_FLAGS:
        assert values.get(name) in ("yes", "no"), f"{name}: {values.get(name)}"
    # The exporter takes lines of three or four words and fails on any other.
    for line in dialogue(server, b"stats settings\r\n", b"END\r\n").split(b"\r\n")[:-2]:
        assert len(line.split(b" ")) in (3, 4), line


@pytest.mark.parametrize("kind", ["", "settings", "items", "slabs"])
def test_lines_fit_the_readers_buffer(server, kind):
    traffic(server)
    for name, value in stats(server, kind):
        assert len(name) + len(value) < 1024


@pytest.mark.skipif(EXPORTER is None, reason="the exporter is not installed")
def test_the_exporter_itself(server):
    traffic(server)
    port = free_port()
    process = subprocess.Popen(
        [EXPORTER, f"--memcached.address={spec(server)}", f"--web.listen-address=127.0.0.1:{port}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as reply:
            text = reply.read().decode()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
    metrics = dict(re.findall(r"^(memcached_\S+) (\S+)$", text, re.MULTILINE))
    assert float(metrics["memcached_up"]) == 1
    for name, count in EXPECTED_COUNTS.items():
        command, _, status = name.partition("_")
        label = {"hits": "hit", "misses": "miss"}.get(status, status)
        metric = f'memcached_commands_total{{command="{command}",status="{label}"}}'
        assert float(metrics[metric]) == count, metric
    assert float(metrics['memcached_commands_total{command="set",status="hit"}']) == 2
    assert float(metrics["memcached_limit_bytes"]) == 64 * 1024 * 1024
    assert float(metrics["memcached_max_connections"]) == 1024


def tool(server, *arguments):
    result = subprocess.run(
        ["perl", MEMCACHED_TOOL, server.socket_path or spec(server), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


def table(text):
    """The names and values of memcached-tool's two columns, below its heading."""
    heading, *lines = text.splitlines()
    assert heading.startswith("#")
    return dict(line.split(None, 1) for line in lines if len(line.split(None, 1)) == 2)


def fill(server, count=200):
    request = b"".join(
        b"set key-%d %d 0 %d\r\n%s\r\n" % (n, n % 5, n * 20, b"x" * (n * 20)) for n in range(count)
    )
    dialogue(server, request + b"mn\r\n", b"MN\r\n")


def test_tool_stats(start_server):
    server = start_server()
    fill(server)
    shown = table(tool(server, "stats"))
    sent = dict(stats(server))
    assert set(shown) == set(sent)
    assert shown["curr_items"] == sent["curr_items"] == "200"
    assert int(shown["pid"]) == server.pid


def test_tool_settings(server):
    shown = table(tool(server, "settings"))
    for name, value in stats(server, "settings"):
        if value:
            assert shown[name] == value


def test_tool_sizes(server):
    fill(server)
    shown = table(tool(server, "sizes"))
    assert shown == dict(stats(server, "sizes")) and shown


def test_tool_display(start_server):
    server = start_server()
    fill(server)
    heading, *rows = tool(server, "display").splitlines()
    assert heading.split()[:5] == ["#", "Item_Size", "Max_age", "Pages", "Count"]
    assert rows
    pattern = r"\s*(\d+)\s+(\d+B|\d+\.\d+K)\s+(\d+)s\s+(\d+)\s+(\d+)\s+(yes|no)" + r"\s+(\d+)" * 3
    matches = [re.fullmatch(pattern, row) for row in rows]
    assert all(matches), rows
    assert sum(int(match[5]) for match in matches) == 200
    assert all(int(match[4]) >= 1 for match in matches)


def metadump(server):
    lines = dialogue(server, b"lru_crawler metadump all\r\n", b"END\r\n").decode().splitlines()
    assert (lines[0], lines[-1]) == ("OK", "END")
    return lines[1:-1]


def test_tool_keys(start_server):
    server = start_server()
    fill(server)
    begun = time.time()
    dialogue(server, b"set later 0 1000 1\r\nx\r\n", b"STORED\r\n")
    stored = time.time()
    rows = tool(server, "keys").splitlines()
    pattern = r"key=(\S+) exp=(-?\d+) la=\d+ cas=\d+ fetch=(?:yes|no) cls=\d+ size=\d+( .*)?"
    matches = {match[1]: int(match[2]) for row in rows if (match := re.match(pattern, row))}
    assert len(matches) == len(rows) == 201
    assert set(matches) == {f"key-{n}" for n in range(200)} | {"later"}
    assert all(matches[f"key-{n}"] == -1 for n in range(200))
    assert begun + 1000 - 3 <= matches["later"] <= stored + 1000 + 3


def test_tool_dump_restores_into_another_server(start_server):
    """The documented use: what `dump` prints are commands that fill another server."""
    source, copy = start_server(), start_server()
    fill(source)
    begun = time.monotonic()
    dialogue(source, b"set expiring 3 1000 3\r\nabc\r\n", b"STORED\r\n")
    dump = tool(source, "dump").encode()
    replies = dialogue(copy, dump + b"mn\r\n", b"MN\r\n")
    assert replies == b"STORED\r\n" * 201 + b"MN\r\n"
    for key in [f"key-{n}" for n in range(200)] + ["expiring"]:
        request = b"get %s\r\n" % key.encode()
        assert dialogue(copy, request, b"END\r\n") == dialogue(source, request, b"END\r\n")
    left = dialogue(copy, b"mg expiring t\r\n", b"\r\n")
    assert 1000 - 3 - (time.monotonic() - begun) <= int(left.split(b" t")[1]) <= 1000


def test_tool_dump_with_a_limit(start_server):
    server = start_server()
    fill(server)
    dump = tool(server, "dump", "10")  # this version of it counts the line OK as a key
    assert len(re.findall(r"^add key-\d+ \d+ 0 \d+\r$", dump, re.MULTILINE)) == 9


def test_tool_over_a_unix_socket(start_server):
    server = start_server(unix=True)
    assert int(table(tool(server, "stats"))["pid"]) == server.pid


def test_metadump_escapes_keys(start_server):
    server = start_server()
    dialogue(server, "set žluť%25 0 0 1\r\nx\r\n".encode(), b"STORED\r\n")
    (line,) = metadump(server)
    assert line.startswith("key=%C5%BElu%C5%A5%2525 exp=-1 ")
