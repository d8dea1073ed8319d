# SPDX-License-Identifier: Apache-2.0
"""Small helpers shared by the client tests."""

import re
import subprocess

from harness.exchange import ask
from harness.patience import PATIENCE_S

TOOL_TIMEOUT_S = PATIENCE_S


# What a client that pickles must give back as it was.
VALUES = [
    "",
    "text",
    "žluťoučký",
    b"",
    b"\r\nEND\r\n",
    bytes(range(256)),
    0,
    -17,
    2**70,
    True,
    [1, "two", {"three": 3.0}],
]


def tcp(server):
    """The server's address as most Python clients take it."""
    return (server.host, server.port)


def spec(server):
    """The server's address as `host:port`."""
    return f"{server.host}:{server.port}"


def run_tool(*command, timeout_s=TOOL_TIMEOUT_S, text_in=None, cwd=None):
    """Runs a command-line client to its end; its exit status and output are the test's to judge."""
    return subprocess.run(
        [str(word) for word in command],
        input=text_in,
        stdin=subprocess.DEVNULL if text_in is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s,
        cwd=cwd,
        encoding="utf-8",
        errors="replace",
    )


def dialogue(server, request, end, timeout_s=PATIENCE_S):
    """Sends raw text and reads until `end` (bytes) ends what came back."""
    with server.connect(timeout_s) as sock:
        return ask(sock, request, end)


def stats(server, kind=""):
    """`stats [kind]` as (name, value) pairs in the order sent; every line must be well formed."""
    request = f"stats {kind}".rstrip().encode() + b"\r\n"
    lines = dialogue(server, request, b"END\r\n").decode("ascii").split("\r\n")
    assert lines[-2:] == ["END", ""], lines[-3:]
    pairs = []
    for line in lines[:-2]:
        match = re.fullmatch(r"STAT (\S+) (.*)", line)
        assert match, f"stats {kind}: malformed line {line!r}"
        pairs.append(match.groups())
    return pairs
