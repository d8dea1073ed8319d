# SPDX-License-Identifier: Apache-2.0
"""warpcache-load tells what a server does, and notices what it does wrong."""

from __future__ import annotations

import re
import time

import pytest
from harness.servers import free_port, start_server
from harness.ucx import UcxServer
from impostor import impostor

REST = ("--warm-up", "0.1", "--keys", "2000")
SHORT = ("--seconds", "0.5", *REST)
LONGER = ("--seconds", "10", *REST)  # where a busy machine manages too little in that time
NEVER = ("wrong", "refused", "out_of_memory")

WORKLOADS = {
    "default": (),
    "meta": ("--meta",),
    "pipelined": ("--pipeline", "32", "--threads", "2"),
    "multiget": ("--multiget", "100", "--sets", "0"),
    "meta-multiget": ("--multiget", "30", "--meta"),
    "deletes": ("--sets", "0.3", "--deletes", "0.1", "--pipeline", "4"),
    "meta-deletes": ("--sets", "0.3", "--deletes", "0.1", "--meta"),
    "expiry": ("--sets", "0.5", "--expiry", "100", "--meta"),
    "one-connection": ("--connections", "1",),
    "latest": ("--distribution", "latest:0.99", "--sets", "0.2"),
    "uniform": ("--distribution", "uniform", "--sizes", "uniform:30:0:3000"),
    "key-mixture": ("--sizes", "keys:2:16=7,64=2,128=1"),
    "etc": ("--sizes", "etc", "--pipeline", "8"),
    "large": ("--sizes", "fixed:20:300000", "--keys", "50", "--pipeline", "3"),
    "udp": ("--udp",),
    "udp-meta": ("--udp", "--meta", "--pipeline", "2"),
    "udp-multiget": ("--udp", "--multiget", "5"),
    "udp-pieces": ("--udp", "--sizes", "fixed:20:1000", "--multiget", "10", "--sets", "0"),
    "paced": ("--rate", "2000"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload(load, server, tmp_path, name):
    arguments = WORKLOADS[name]
    for common in (SHORT, LONGER):
        outcome = load(f"{server.host}:{server.port}", *common, *arguments, tmp_path=tmp_path)
        assert outcome.status == 0, outcome
        report = outcome.report
        if report["requests"] > 20:
            break
    assert report["requests"] > 20 and report["keys_read"] > 0
    assert [report[field] for field in NEVER] == [0, 0, 0]
    # On a busy machine the last requests of an open loop may be due before they can be sent.
    assert report["unsent"] < report["requests"]
    if not {"--deletes", "latest:0.99", "--udp"} & set(arguments):
        assert report["misses"] == 0
    assert report["hit_ratio"] > 0.4
    latency = report["latency"]
    assert 0 < latency["p50_us"] <= latency["p99_us"] <= latency["max_us"]


def test_lateness_of_each_thread(load, server, tmp_path):
    """In an open loop the report says of each thread how late it was, and over time what requests took."""
    options = ("--rate", "3000", "--threads", "3", "--seconds", "1.5", "--interval", "0.25", *REST)
    outcome = load(f"{server.host}:{server.port}", *options, tmp_path=tmp_path)
    assert outcome.status == 0, outcome
    report = outcome.report
    threads = report["by_thread"]
    assert len(threads) == 3 and sum(thread["requests"] for thread in threads) == report["requests"]
    assert max(thread["sent_late"]["max_us"] for thread in threads) == report["sent_late"]["max_us"]
    assert all(f"- thread {number}" in outcome.table for number in range(3))
    moments = report["intervals"]
    assert 1 <= len(moments) <= 6 and moments[0]["at_s"] > 0
    assert [moment["at_s"] for moment in moments] == sorted(moment["at_s"] for moment in moments)
    assert all(moment["p50_us"] <= moment["p99_us"] <= moment["max_us"] for moment in moments)


def test_closed_loop_has_no_lateness(load, server, tmp_path):
    outcome = load(f"{server.host}:{server.port}", *SHORT, "--threads", "2", tmp_path=tmp_path)
    assert outcome.status == 0, outcome
    assert "by_thread" not in outcome.report and "- thread" not in outcome.table


def test_unix_socket(load, target, tmp_path):
    server = start_server(target, unix=True)
    try:
        outcome = load(server.socket_path, *SHORT, "--pipeline", "8", tmp_path=tmp_path)
        assert outcome.status == 0 and outcome.report["misses"] == 0, outcome
    finally:
        server.stop()


@pytest.mark.parametrize("arguments", [(), ("--meta", "-g", "10"), ("--rate", "500"), ("--sizes", "fixed:20:20000")])
def test_active_messages(load, tmp_path, arguments):
    with UcxServer("-m", "256") as server:
        options = ("-t", "2", "-c", "6", "-P", "4", "-k", "1000", "-s", "0.5", "--warm-up", "0", *arguments)
        target = f"127.0.0.1:{server.sockets.port}"
        outcome = load(target, "--ucx", str(server.ucx_port), *options, tmp_path=tmp_path)
        assert outcome.status == 0, outcome.errors
        assert outcome.report["requests"] > 0 and outcome.report["hit_ratio"] == 1
        assert outcome.report["wrong"] == outcome.report["refused"] == 0
        assert int(server.stats()["ucx_opened"]) == 6
        assert int(server.stats()["total_connections"]) < 12  # the load opens no socket


def test_trace(load, server, tmp_path):
    path = tmp_path / "trace"
    path.write_text("set tree 500\nget tree\nget house\nget tree\ndelete bush\nget bush\n")
    where = f"{server.host}:{server.port}"
    options = ("--distribution", f"trace:{path}", "--connections", "1", "--sizes", "fixed:20:40")
    outcome = load(where, *options, "--requests", "6000", "--warm-up", "0", tmp_path=tmp_path)
    assert outcome.status == 0, outcome
    report = outcome.report
    assert (report["requests"], report["set"]["requests"]) == (6000, 1000)
    assert (report["hits"], report["misses"]) == (3000, 1000)


def test_counts_are_what_the_server_counted(load, target, tmp_path):
    server = start_server(target)
    try:
        options = ("--requests", "5000", "--warm-up", "0", "--keys", "300", "--sets", "0.5")
        outcome = load(f"{server.host}:{server.port}", *options, tmp_path=tmp_path)
        with server.connect() as sock:
            sock.sendall(b"stats\r\n")
            text = b""
            while not text.endswith(b"END\r\n"):
                text += sock.recv(65536)
    finally:
        server.stop()
    stats = {name: int(value) for name, value in re.findall(r"STAT (\w+) (\d+)\r", text.decode())}
    report = outcome.report
    assert outcome.status == 0 and report["requests"] == 5000, outcome
    assert stats["cmd_get"] == report["get"]["requests"] == report["hits"]
    assert stats["cmd_set"] == report["set"]["requests"] + 300
    assert stats["curr_items"] == 300


def test_look_aside_stores_what_it_missed(load, target, tmp_path):
    server = start_server(target)
    try:
        options = ("--look-aside", "--sets", "0", "--keys", "500", "--requests", "20000")
        options += ("--warm-up", "0", "--distribution", "uniform", "--connections", "5")
        outcome = load(f"{server.host}:{server.port}", *options, tmp_path=tmp_path)
    finally:
        server.stop()
    report = outcome.report
    assert outcome.status == 0, outcome
    # Two connections may miss a key at once; none is missed once it is stored.
    assert 500 <= report["misses"] <= 600
    assert report["set"]["requests"] == report["misses"]


def test_open_loop_keeps_its_rate(load, server, tmp_path):
    options = ("--rate", "1000", "--seconds", "2", "--keys", "1000", "--pipeline", "8")
    outcome = load(f"{server.host}:{server.port}", *options, tmp_path=tmp_path)
    assert outcome.status == 0, outcome
    report = outcome.report
    # A machine that is too busy sends less, and says so.
    due = report["requests"] + report["unsent"]
    assert due / report["seconds"] == pytest.approx(1000, rel=0.1) and report["requests"] > report["unsent"]


def test_open_loop_counts_from_when_a_request_was_due(load, tmp_path):
    """A server that answers 50 requests/s is asked for 500: the wait shows, and what was not sent."""

    def slowly(data: bytes) -> bytes:
        time.sleep(0.02)
        return b"END\r\n" * data.count(b"get ")

    with impostor(slowly) as where:
        options = ("--rate", "500", "--seconds", "1", "--warm-up", "0", "--connections", "1")
        outcome = load(where, *options, "--no-fill", "--sets", "0", tmp_path=tmp_path)
    assert outcome.status == 0, outcome
    assert outcome.report["latency"]["max_us"] > 500_000
    assert outcome.report["unsent"] > 300


def test_server_process_is_measured(load, target, tmp_path):
    server = start_server(target)
    try:
        options = (*SHORT, "--server-pid", str(server.pid))
        report = load(f"{server.host}:{server.port}", *options, tmp_path=tmp_path).report
    finally:
        server.stop()
    assert 0.1 < report["server_cpu_us_per_request"] < 1000
    assert report["server_resident_kib"] > 1000


def test_output(load, server, tmp_path):
    where = f"{server.host}:{server.port}"
    outcome = load(where, "--seconds", "2.2", "--warm-up", "0", tmp_path=tmp_path)
    assert re.search(r"^get +\d+ +\d+ ", outcome.table, re.MULTILINE)
    assert re.search(r"hits 100\.00%", outcome.table)
    assert 1 <= len(re.findall(r"requests/s", outcome.errors)) <= 2  # a line each second
    quiet = load(where, *SHORT, "--quiet", tmp_path=tmp_path)
    assert quiet.errors == ""


WRONG_ANSWERS = {
    "other value": b"VALUE %s 7 5\r\nhello\r\nEND\r\n",
    "other key": b"VALUE another 7 5\r\nhello\r\nEND\r\n",
    "refusal": b"SERVER_ERROR busy\r\n",
}


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_wrong_answers_are_an_error(load, tmp_path, name):
    def answer(data: bytes) -> bytes:
        key = data.split()[1]
        return WRONG_ANSWERS[name].replace(b"%s", key)

    options = (*SHORT, "--no-fill", "--sets", "0", "--connections", "1")
    with impostor(answer) as where:
        outcome = load(where, *options, tmp_path=tmp_path)
    assert outcome.status == 1
    field, word = ("refused", "busy") if name == "refusal" else ("wrong", "WRONG VALUES")
    assert outcome.report[field] > 0 and word in outcome.table


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda data: b"HTTP/1.1 400 Bad Request\r\n", "HTTP/1.1 400"),
        (lambda data: None, "closed|reset"),
        (lambda data: b"", "no reply in time"),
        (lambda data: b"END\r\nEND\r\n", "not asked for"),
    ],
    ids=["no memcached", "closes", "silent", "too much"],
)
def test_a_server_that_is_none_is_an_error(load, tmp_path, answer, says):
    options = (*SHORT, "--no-fill", "--sets", "0", "--timeout", "0.3", "--connections", "2")
    with impostor(answer) as where:
        outcome = load(where, *options, tmp_path=tmp_path)
    assert outcome.status == 3
    assert re.search(says, outcome.errors), outcome.errors


def test_no_server_is_an_error(load, tmp_path):
    for arguments in (), ("--udp",):
        outcome = load(f"127.0.0.1:{free_port()}", *arguments, tmp_path=tmp_path)
        assert outcome.status == 3
        assert "Connection refused" in outcome.errors
    assert load("/no/such/socket", tmp_path=tmp_path).status == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--no-such-option",),
        ("--sets", "0.9", "--deletes", "0.2"),
        ("--sizes", "fixed:3:10"),
        ("--distribution", "normal"),
        ("--distribution", "trace:/no/such/file"),
        ("--pipeline", "0"),
        ("--threads", "4", "--connections", "2"),
        ("--udp", "--meta", "--multiget", "2"),
    ],
    ids=" ".join,
)
def test_command_line_is_refused(load, tmp_path, arguments):
    outcome = load("127.0.0.1:1", *arguments, tmp_path=tmp_path)
    assert outcome.status == 2
    assert outcome.errors.startswith("warpcache-load: ")


def test_help(load, tmp_path):
    outcome = load("--help", tmp_path=tmp_path)
    assert outcome.status == 0
    assert "Exit status" in outcome.table and "--pipeline" in outcome.table
