# SPDX-License-Identifier: Apache-2.0
"""The command-line tools of libmemcached (Debian's libmemcached-tools), text and binary."""

from harness.patience import PATIENCE_S
import os
import re
import time

import pytest

from clients.support import dialogue, run_tool, spec, stats


@pytest.fixture(params=["text", "binary"])
def tool(request, server, tmp_path):
    """Runs one of the tools against the server in the wanted protocol, from a folder of its own."""
    binary = ["-b"] if request.param == "binary" else []

    def run(name, *arguments):
        return run_tool(name, *binary, "-s", spec(server), *arguments, cwd=tmp_path)

    return run


def put(server, key, value, flags=0, expire=0):
    head = f"set {key} {flags} {expire} {len(value)}\r\n".encode()
    assert dialogue(server, head + value + b"\r\n", b"\r\n") == b"STORED\r\n"


def fetch(server, key):
    reply = dialogue(server, f"get {key}\r\n".encode(), b"END\r\n")
    match = re.fullmatch(rb"VALUE (\S+) (\d+) (\d+)\r\n(.*)\r\nEND\r\n", reply, re.DOTALL)
    return match and (match[4], int(match[2]))


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 300_000, 1_000_000])
def test_memccp_and_memccat(server, tool, tmp_path, size):
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert tool("memccp", "-F", "7", "file").returncode == 0
    assert fetch(server, "file") == (data, 7)
    (tmp_path / "file").unlink()
    assert tool("memccat", "-f", "out", "file").returncode == 0
    assert (tmp_path / "out").read_bytes() == data


def test_memccat_of_several_keys(server, tool):
    for number in range(5):
        put(server, f"key-{number}", b"value %d" % number, flags=number)
    result = tool("memccat", *(f"key-{number}" for number in range(5)))
    assert result.returncode == 0
    assert result.stdout.split("\n")[:5] == [f"value {number}" for number in range(5)]
    assert tool("memccat", "-F", "key-3").stdout.split() == ["3", "value", "3"]
    assert tool("memccat", "missing").returncode == 1


def test_memccp_add_and_replace(server, tool, tmp_path):
    (tmp_path / "file").write_text("first")
    assert tool("memccp", "-R", "file").returncode == 1
    assert tool("memccp", "-A", "file").returncode == 0
    (tmp_path / "file").write_text("second")
    assert tool("memccp", "-A", "file").returncode == 1
    assert fetch(server, "file") == (b"first", 0)
    assert tool("memccp", "-R", "file").returncode == 0
    assert fetch(server, "file") == (b"second", 0)


def test_memccp_of_many_files(server, tool, tmp_path):
    names = [f"file-{number}" for number in range(60)]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(bytes([number]) * number * 100)
    assert tool("memccp", *names).returncode == 0
    for number, name in enumerate(names):
        assert fetch(server, name) == (bytes([number]) * number * 100, 0)


def test_memccp_with_expiry_and_memctouch(server, tool, tmp_path):
    for name in ("short", "touched"):
        (tmp_path / name).write_text("value")
    assert tool("memccp", "-e", "4", "short", "touched").returncode == 0
    assert tool("memctouch", "-e", "100", "touched").returncode == 0
    assert tool("memctouch", "-e", "100", "missing").returncode == 1
    time.sleep(5.1)
    assert fetch(server, "short") is None
    assert fetch(server, "touched") == (b"value", 0)


def test_memccp_over_udp(server, tmp_path):
    (tmp_path / "file").write_text("sent over UDP")
    result = run_tool("memccp", "-U", "-s", spec(server), "file", cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    deadline = time.monotonic() + PATIENCE_S
    while fetch(server, "file") is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert fetch(server, "file") == (b"sent over UDP", 0)


def test_memcexist_and_memcrm(server, tool):
    put(server, "key", b"value")
    assert tool("memcexist", "key").returncode == 0
    assert fetch(server, "key") == (b"value", 0)
    assert tool("memcrm", "key").returncode == 0
    assert tool("memcexist", "key").returncode == 1
    assert tool("memcrm", "key").returncode == 1
    assert fetch(server, "key") is None


def test_memcflush(server, tool):
    put(server, "key", b"value")
    assert tool("memcflush").returncode == 0
    assert fetch(server, "key") is None


def test_memcping(server):
    assert run_tool("memcping", "-s", spec(server)).returncode == 0


def test_memcping_notices_a_dead_server(start_server):
    server = start_server()
    address = spec(server)
    server.stop()
    assert run_tool("memcping", "-s", address).returncode == 1


def shown(result):
    """The name and value pairs that memcstat prints, one per line."""
    assert result.returncode == 0, result.stdout
    return dict(re.findall(r"^\s+(\S+): (.*)$", result.stdout, re.MULTILINE))


def test_memcstat(server, tool):
    put(server, "key", b"value")
    fetch(server, "key")
    values = shown(tool("memcstat"))
    assert int(values["pid"]) == server.pid
    assert int(values["cmd_set"]) == 1 and int(values["get_hits"]) == 1
    assert set(values) == {name for name, _ in stats(server)}


@pytest.mark.parametrize("kind", ["settings", "items", "slabs", "sizes"])
def test_memcstat_with_an_argument(server, tool, kind):
    put(server, "key", b"value")
    values = shown(tool("memcstat", kind))
    assert set(values) == {name for name, _ in stats(server, kind)} and values


def test_memcstat_of_the_connections(server):
    values = shown(run_tool("memcstat", "-s", spec(server), "conns"))
    # A set of lines for each connection; the number before the colon is the connection's own.
    fields = {name.split(":")[1] for name in values}
    assert {"addr", "listen_addr", "state", "secs_since_last_cmd"} <= fields


def test_memcstat_server_version(server):
    result = run_tool("memcstat", "-S", "-s", spec(server))
    version = dialogue(server, b"version\r\n", b"\r\n").decode().split()[1]
    assert result.returncode == 0
    # libmemcached keeps the three numbers only.
    assert result.stdout.split() == [spec(server), ".".join(version.split(".")[:3]).split("-")[0]]


def test_memcstat_latency(server):
    result = run_tool("memcstat", "--analyze=latency", "--iterations=50", "-s", spec(server))
    assert result.returncode == 0 and re.search(r"=> [0-9.]+ seconds", result.stdout)


def test_memcstat_analysis_of_three_servers(start_server):
    servers = [start_server() for _ in range(3)]
    for server in servers:
        put(server, "key", b"value")
        fetch(server, "key")
    result = run_tool("memcstat", "--analyze", "-s", ",".join(spec(one) for one in servers))
    assert result.returncode == 0, result.stdout
    assert re.search(r"Number of Servers Analyzed\s+: 3", result.stdout)
    assert re.search(r"Average Item Size.*: [1-9]\d* bytes", result.stdout)


def test_memcdump(server):
    """memcdump asks `stats cachedump` for the keys of every class."""
    keys = {f"dump-{size}" for size in (1, 10, 100, 1000, 10_000)}
    for key in keys:
        put(server, key, b"x" * int(key.split("-")[1]))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        result = run_tool("memcdump", "-s", spec(server))
        assert result.returncode == 0, result.stdout
        if keys <= set(result.stdout.split()) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert keys <= set(result.stdout.split())


def test_tools_over_several_servers(start_server, tmp_path):
    servers = [start_server() for _ in range(3)]
    addresses = ",".join(spec(one) for one in servers)
    names = [f"file-{number}" for number in range(60)]
    for name in names:
        (tmp_path / name).write_text(f"contents of {name}")
    assert run_tool("memccp", "-s", addresses, *names, cwd=tmp_path).returncode == 0
    result = run_tool("memccat", "-s", addresses, *names)
    assert result.stdout.split("\n")[:60] == [f"contents of {name}" for name in names]
    held = [sum(fetch(one, name) is not None for name in names) for one in servers]
    assert sum(held) == 60 and all(held)
    assert run_tool("memcflush", "-s", addresses).returncode == 0
    assert all(fetch(one, name) is None for one in servers for name in names)
