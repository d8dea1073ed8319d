# SPDX-License-Identifier: Apache-2.0
"""The binary protocol for transcripts: readable macros to packets, packets back to fields."""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER = struct.Struct(">BBHBBHIIQ")
HEADER_SIZE = HEADER.size
MAGIC_REQUEST = 0x80
MAGIC_RESPONSE = 0x81

OPCODES = {
    name: code
    for code, name in enumerate(
        "get set add replace delete incr decr quit flush getq noop version getk getkq append "
        "prepend stat setq addq replaceq deleteq incrq decrq quitq flushq appendq prependq "
        "verbosity touch gat gatq".split()
    )
}
OPCODES |= {"sasl_list": 0x20, "sasl_auth": 0x21, "sasl_step": 0x22, "gatk": 0x23, "gatkq": 0x24}
OPCODE_NAMES = {code: name for name, code in OPCODES.items()}

STATUSES = {
    "ok": 0x00,
    "not_found": 0x01,
    "exists": 0x02,
    "too_large": 0x03,
    "invalid": 0x04,
    "not_stored": 0x05,
    "non_numeric": 0x06,
    "auth_error": 0x20,
    "auth_continue": 0x21,
    "unknown": 0x81,
    "no_memory": 0x82,
}
STATUS_NAMES = {code: name for name, code in STATUSES.items()}

# The body that goes with an error unless the transcript names another one.
STATUS_TEXTS = {
    0x01: b"Not found",
    0x02: b"Data exists for key.",
    0x03: b"Too large.",
    0x04: b"Invalid arguments",
    0x05: b"Not stored.",
    0x06: b"Non-numeric server-side value for incr or decr",
    0x20: b"Auth failure.",
    0x81: b"Unknown command",
    0x82: b"Out of memory",
}

# Extras by opcode, request side: (field name, struct code, default; None = left out if not given).
_STORE = (("flags", "I", 0), ("exptime", "I", 0))
_COUNT = (("delta", "Q", 1), ("initial", "Q", 0), ("exptime", "I", 0))
_TOUCH = (("exptime", "I", 0),)
_FLUSH = (("exptime", "I", None),)
_VERBOSITY = (("level", "I", 0),)
REQUEST_EXTRAS = (
    {name: _STORE for name in "set add replace setq addq replaceq".split()}
    | {name: _COUNT for name in "incr decr incrq decrq".split()}
    | {name: _TOUCH for name in "touch gat gatq gatk gatkq".split()}
    | {"flush": _FLUSH, "flushq": _FLUSH, "verbosity": _VERBOSITY}
)
# Replies that carry the item's flags when they succeed.
FLAGS_REPLIES = frozenset(
    OPCODES[name] for name in "get getq getk getkq gat gatq gatk gatkq touch".split()
)
COUNT_REPLIES = frozenset(OPCODES[name] for name in "incr decr incrq decrq".split())


def parse_int(text: str) -> int:
    return int(text, 0)


def opcode_number(text: str) -> int:
    return OPCODES[text] if text in OPCODES else parse_int(text)


def encode_request(name: str, fields: dict[str, bytes]) -> bytes:
    """A request packet. Header fields are derived from the parts unless given outright."""
    fields = dict(fields)

    def take(key: str, default: int) -> int:
        return parse_int(fields.pop(key).decode()) if key in fields else default

    opcode = opcode_number(name)
    key = fields.pop("key", b"")
    value = fields.pop("value", b"")
    if "extras" in fields:
        extras = bytes.fromhex(fields.pop("extras").decode())
    else:
        extras = b""
        for part, code, default in REQUEST_EXTRAS.get(name, ()):
            number = take(part, default) if part in fields or default is not None else None
            if number is not None:
                extras += struct.pack(">" + code, number)
    body = extras + key + value
    header = HEADER.pack(
        take("magic", MAGIC_REQUEST),
        opcode,
        take("keylen", len(key)),
        take("extlen", len(extras)),
        take("datatype", 0),
        take("vbucket", 0),
        take("bodylen", len(body)),
        take("opaque", 0),
        take("cas", 0),
    )
    if fields:
        raise ValueError(f"unknown binary field(s) {sorted(fields)} for {name}")
    return header + body


@dataclass(frozen=True)
class Reply:
    """One reply packet, taken apart."""

    magic: int
    opcode: int
    status: int
    datatype: int
    opaque: int
    cas: int
    extras: bytes
    key: bytes
    value: bytes

    def describe(self) -> str:
        name = OPCODE_NAMES.get(self.opcode, hex(self.opcode))
        status = STATUS_NAMES.get(self.status, hex(self.status))
        parts = [name] if self.status == 0 else [name, f"status={status}"]
        if self.status == 0 and self.opcode in FLAGS_REPLIES and len(self.extras) == 4:
            flags = struct.unpack(">I", self.extras)[0]
            if flags:
                parts.append(f"flags={flags}")
        elif self.extras:
            parts.append(f"extras={self.extras.hex()}")
        if self.key:
            parts.append(f"key={quote(self.key)}")
        if self.status == 0 and self.opcode in COUNT_REPLIES and len(self.value) == 8:
            parts.append(f"number={struct.unpack('>Q', self.value)[0]}")
        elif self.value != STATUS_TEXTS.get(self.status, b""):
            parts.append(f"value={quote(self.value)}")
        if self.opaque:
            parts.append(f"opaque={self.opaque:#x}")
        if self.cas:
            parts.append(f"cas={self.cas}")
        if self.magic != MAGIC_RESPONSE:
            parts.append(f"magic={self.magic:#x}")
        if self.datatype:
            parts.append(f"datatype={self.datatype}")
        return " ".join(parts)


def decode_reply(header: bytes, body: bytes) -> Reply:
    magic, opcode, keylen, extlen, datatype, status, bodylen, opaque, cas = HEADER.unpack(header)
    if extlen + keylen > bodylen:
        raise ValueError(f"reply header does not add up: {header.hex()}")
    return Reply(
        magic,
        opcode,
        status,
        datatype,
        opaque,
        cas,
        body[:extlen],
        body[extlen : extlen + keylen],
        body[extlen + keylen :],
    )


def body_length(header: bytes) -> int:
    return HEADER.unpack(header)[6]


def quote(data: bytes, limit: int | None = None) -> str:
    """Bytes in a transcript's own spelling."""
    cut = data if limit is None or len(data) <= limit else data[:limit]
    out = []
    for byte in cut:
        char = chr(byte)
        if char == "\\" or char == "{":
            out.append("\\" + char)
        elif char == " ":
            out.append("\\s")
        elif 0x21 <= byte < 0x7F:
            out.append(char)
        elif char == "\r":
            out.append("\\r")
        elif char == "\n":
            out.append("\\n")
        else:
            out.append(f"\\x{byte:02x}")
    text = "".join(out)
    return text if cut is data else f"{text}...({len(data)} bytes)"
