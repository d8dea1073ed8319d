# SPDX-License-Identifier: Apache-2.0
"""Only protocol/framing finds where messages end (docs/reliability.md, rule 18). No other code of src/ searches a line
end or reads a message's length, except the two parsers of the single-key fast path, which tests and fuzz targets compare
with framing, and the uses that EXCEPTIONS names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from source_tree import REPO_ROOT, cpp_files, read

SOURCE = REPO_ROOT / "src"
ALLOWED_FOLDERS = ("protocol/framing/",)
ALLOWED_FILES = (
    "protocol/single_key/packet.h",
    "protocol/single_key/get.h",
    "protocol/single_key/set.h",
    "protocol/single_key/wide.h",
)

LINE_END = r"(?:u8)?['\"](?:\\r)?(?:\\n|\\x0[aAdD]|\\r)['\"]"
LINE_END_BYTES = r"0x0*(?:0a0d|0d0a|0a|0d)(?:0a|0d)*\b|0x(?:0a){2,}\w*"
PATTERNS = {
    "compares with a line end": re.compile(
        rf"(?:[=!]=|\^)\s*(?:{LINE_END}|(?:{LINE_END_BYTES}))|(?:{LINE_END}|(?:{LINE_END_BYTES}))\s*(?:[=!]=|\^)",
        re.IGNORECASE,
    ),
    "branches on a line end": re.compile(rf"\bcase\s+(?:{LINE_END}|(?:{LINE_END_BYTES}))\s*:", re.IGNORECASE),
    "searches a line end": re.compile(
        rf"\b\w*?(?:find\w*|memchr|mem(?:r?chr|mem)|strchr|strpbrk|strcspn|getline|contains|split\w*|count\w*|_mm\w*_set1_epi8)"
        rf"\s*\((?:[^()]|\([^()]*\))*?{LINE_END}"
    ),
    "uses the scanner of framing": re.compile(r"\b(?:scan_line|find_newline|find_delimiter)\s*\("),
    "cuts a line end off": re.compile(r"\bwithout_line_end\s*\("),
    "reads a binary message's length": re.compile(r"\bload_binary_header\s*\(|\bbody_size\s*=\s*load_"),
    "reads a text message's length": re.compile(r"\bfind_length\s*\("),
}

# File of src/ and what of PATTERNS it does, with the reason.
EXCEPTIONS = {
    ("protocol/parse/words.h", "cuts a line end off"): "the function itself",
    ("protocol/parse/words.h", "compares with a line end"): "cuts the line end off that framing has found",
    ("protocol/parse/text.h", "cuts a line end off"): "of a line that framing has found",
    ("protocol/parse/meta.h", "cuts a line end off"): "of a line that framing has found",
    ("protocol/binary.h", "reads a binary message's length"): "the function itself; extras of a framed message",
    ("admin/access.cc", "searches a line end"): "lines of a file",
    ("admin/access.cc", "compares with a line end"): "lines of a file",
    ("admin/dump_replies.cc", "searches a line end"): "its own reply",
    ("admin/watchers.cc", "searches a line end"): "lines of the command log",
    ("client/am_channel.cc", "searches a line end"): "replies, in a client",
    ("client/codec/text.cc", "searches a line end"): "replies, in a client",
    ("client/socket_channel.cc", "compares with a line end"): "replies, in a client",
    ("io/frames/dpdk/dpdk_eal.cc", "compares with a line end"): "lines of DPDK's log",
    ("nic_cache/bpf/commands.h", "compares with a line end"): "a datagram that is one command as a whole; all else passes",
    ("options/auth_file.cc", "searches a line end"): "lines of a file",
    ("options/auth_file.cc", "compares with a line end"): "lines of a file",
    ("options/logging.cc", "searches a line end"): "lines of the log",
    ("options/option_words.cc", "compares with a line end"): "a text of ours",
    ("options/options.cc", "compares with a line end"): "a text of ours",
    ("worker/command_log.cc", "compares with a line end"): "prints a line that framing has found, and replies",
    ("worker/command_log.cc", "searches a line end"): "replies of ours, which no framing has seen",
    ("worker/command_log.cc", "reads a binary message's length"): "prints the header of a framed message, and replies",
}


def without_comments(text: str) -> str:
    """Comments of C++ removed; strings and characters stay."""
    token = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'", re.DOTALL)
    return token.sub(lambda match: " " if match.group(0).startswith(("//", "/*")) else match.group(0), text)


def uses(text: str) -> set[str]:
    code = without_comments(text)
    return {what for what, pattern in PATTERNS.items() if pattern.search(code)}


def is_checked(name: str) -> bool:
    is_test = name.endswith("_test.cc") or "/testing/" in name
    return not (is_test or name in ALLOWED_FILES or name.startswith(ALLOWED_FOLDERS))


def found_in_source() -> set[tuple[str, str]]:
    files = [(path.relative_to(SOURCE).as_posix(), path) for path in cpp_files(SOURCE)]
    return {(name, what) for name, path in files if is_checked(name) for what in uses(read(path))}


def test_no_other_code_finds_message_boundaries():
    assert sorted(found_in_source() - set(EXCEPTIONS)) == []


def test_no_exception_is_left_over():
    assert sorted(set(EXCEPTIONS) - found_in_source()) == []


@pytest.mark.parametrize("name", [*ALLOWED_FILES, "protocol/framing/scan.h", "protocol/framing/frame_text.h"])
def test_what_is_allowed_to_exists(name):
    assert (SOURCE / name).is_file() and not is_checked(name)


def test_framing_itself_would_be_found():
    """The patterns know what framing and the two parsers do."""
    folder = SOURCE / "protocol"
    for name in ("framing/scan.h", "framing/frame_keys.h", "framing/frame_text.h", "framing/frame_binary.h"):
        assert uses(read(folder / name)), name
    assert uses(read(Path(folder / "single_key" / "get.h"))) and uses(read(folder / "single_key" / "set.h"))


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (r"if (at[0] == '\r' && at[1] == '\n') return;", "compares with a line end"),
        (r"if ('\n' != byte) continue;", "compares with a line end"),
        (r'if (text == "\r\n") return;', "compares with a line end"),
        (r"found |= zero_bytes(word ^ 0x0a0a0a0au);", "compares with a line end"),
        (r"if (load_as<uint16_t>(at) == 0x0a0d) return;", "compares with a line end"),
        (r"switch (c) { case '\n': return; }", "branches on a line end"),
        (r"const void* end = memchr(data, '\n', size);", "searches a line end"),
        (r'const size_t end = text.find("\r\n");', "searches a line end"),
        (r"auto end = std::find(begin(), end(), '\n');", "searches a line end"),
        (r"const LineScan scan = scan_line(begin, at, end, 10);", "uses the scanner of framing"),
        (r"const Bytes line = without_line_end(head);", "cuts a line end off"),
        (r"const BinaryHeader header = load_binary_header(at);", "reads a binary message's length"),
    ],
)
def test_the_check_itself(code, what):
    assert what in uses(f"// text\n{code}\n")


@pytest.mark.parametrize(
    "code",
    [
        r"// a comment: at == '\n'",
        r"/* memchr(data, '\n', size) */",
        r"*at++ = '\r'; *at++ = '\n';",
        r'return put(out, "STORED\r\n");',
        r"text += '\n'; if (text.size() == 7) flush();",
        r"const size_t colon = line.find(':');",
    ],
)
def test_the_check_leaves_alone(code):
    assert uses(code) == set()
