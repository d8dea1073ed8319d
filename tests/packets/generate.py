#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files in cases/ anew. What counts is what they hold: read the difference before it is committed."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from frames import PLAIN, UDP, Form, frame, memcached_header, replies, request

CASES = Path(__file__).resolve().parent / "cases"
IPV6 = Form(version=6)
VLAN = Form(tags=((0x8100, 0x2064),))
QINQ = Form(tags=((0x88A8, 0x2064), (0x8100, 0x6065)))


def sends(raw: bytes, out=(), verdict: str = "request") -> dict:
    """A step: a frame as it is, and the frames that answer it."""
    return {"in": raw.hex(), "out": [one if isinstance(one, str) else one.hex() for one in out], "verdict": verdict}


def asks(text: str | bytes, answer: str | bytes = "", form: Form = PLAIN, request_id: int = 1) -> dict:
    """A step: a request, and the text that answers it."""
    text, answer = (t.encode("latin-1") if isinstance(t, str) else t for t in (text, answer))
    return sends(request(text, form, request_id), replies(answer, form, request_id))


def waits(seconds: int) -> dict:
    return {"advance_s": seconds}


def case(name: str, *steps: dict, setup: list[str] | tuple = (), why: str = "") -> dict:
    made = {"name": name, "setup": list(setup), "steps": list(steps)}
    return made | ({"why": why} if why else {})


def stored(key: str, value: str, flags: int = 0, exptime: int = 0) -> str:
    return f"set {key} {flags} {exptime} {len(value)}\r\n{value}\r\n"


def value(key: str, text: str, flags: int = 0, cas: int | None = None) -> str:
    unique = "" if cas is None else f" {cas}"
    return f"VALUE {key} {flags} {len(text)}{unique}\r\n{text}\r\n"


END = "END\r\n"


def get_cases():
    a = stored("a", "alpha", 7)
    b = stored("b", "beta")
    yield case("hit", asks("get a\r\n", value("a", "alpha", 7) + END), setup=[a])
    yield case("miss", asks("get a\r\n", END))
    yield case("line feed alone ends a line", asks("get a\n", value("a", "alpha", 7) + END), setup=[a])
    yield case("empty value", asks("get e\r\n", value("e", "") + END), setup=[stored("e", "")])
    binary = "".join(map(chr, range(256))) + "\r\nEND\r\n"
    yield case("value of any bytes", asks("get v\r\n", value("v", binary) + END), setup=[stored("v", binary)])
    yield case(
        "several keys are answered in order, misses with nothing",
        asks("get b none a b\r\n", value("b", "beta") + value("a", "alpha", 7) + value("b", "beta") + END),
        setup=[a, b],
    )
    yield case("several keys, all missing", asks("get x y z\r\n", END))
    keys = [f"k{i}" for i in range(100)]
    yield case(
        "a hundred keys",
        asks("get " + " ".join(keys) + "\r\n", "".join(value(k, k * 2) for k in keys) + END),
        setup=[stored(k, k * 2) for k in keys],
    )
    cas = "ms c 5 E1234567890123\r\nhello\r\n"
    yield case("gets shows the CAS id", asks("gets c none\r\n", value("c", "hello", 0, 1234567890123) + END), setup=[cas])
    yield case(
        "gat sets the time to live of what it finds",
        asks("gat 100 g none\r\n", value("g", "x") + END),
        waits(50),
        asks("get g\r\n", value("g", "x") + END),
        waits(60),
        asks("get g\r\n", END),
        setup=[stored("g", "x", 0, 10)],
    )
    yield case("gats", asks("gats 0 c\r\n", value("c", "hello", 0, 1234567890123) + END), setup=[cas])
    yield case(
        "several commands in one datagram are one reply",
        asks("get a\r\nget none\r\nget b\r\n", value("a", "alpha", 7) + END + END + value("b", "beta") + END),
        setup=[a, b],
    )
    yield case("no key", asks("get\r\n", "CLIENT_ERROR bad command line format\r\n"))
    yield case("unknown command", asks("bogus\r\n", "ERROR\r\n"))


def key_cases():
    for size in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 249, 250):
        key = ("abcdefghijklmnopqrstuvwxyz0123456789" * 7)[:size]
        yield case(
            f"key of {size} bytes",
            asks(stored(key, str(size)), "STORED\r\n"),
            asks(f"get {key}\r\n", value(key, str(size)) + END),
            asks(f"delete {key}\r\n", "DELETED\r\n"),
            asks(f"get {key}\r\n", END),
        )
    long_key = "k" * 251
    refused = "CLIENT_ERROR bad command line format\r\n"
    yield case("get of a key of 251 bytes", asks(f"get {long_key}\r\n", refused), asks("get " + "k" * 250 + "\r\n", END))
    yield case(
        "set of a key of 251 bytes stores nothing",
        asks(stored(long_key, "x"), refused),
        asks("get " + "k" * 250 + "\r\n", END),
    )
    yield case("meta get of a key of 251 bytes", asks(f"mg {long_key} v\r\n", refused))


def store_cases():
    k = stored("k", "old", 3)
    missing = ("NOT_STORED\r\n", END)
    yield case("set", asks(stored("k", "new", 9), "STORED\r\n"), asks("get k\r\n", value("k", "new", 9) + END))
    yield case("set over", asks(stored("k", "newer"), "STORED\r\n"), asks("get k\r\n", value("k", "newer") + END), setup=[k])
    new = [asks(stored("k", "newer"), "STORED\r\n"), asks("get k\r\n", value("k", "newer") + END)]
    yield case("set over an item that has expired", waits(20), *new, setup=[stored("k", "old", 3, 10)])
    yield case("set over an item after flush_all", asks("flush_all\r\n", "OK\r\n"), *new, setup=[k])
    yield case("noreply", asks("set k 0 0 1 noreply\r\nx\r\n"), asks("get k\r\n", value("k", "x") + END))
    yield case("set without all of its data", asks("set k 0 0 9\r\nx\r\n", "CLIENT_ERROR bad command line format\r\n"))
    yield case("set with another end than CRLF", asks("set k 0 0 1\r\nxyz", "CLIENT_ERROR bad data chunk\r\n"), asks("get k\r\n", END))
    yield case("add", asks("add k 1 0 1\r\nx\r\n", "STORED\r\n"), asks("get k\r\n", value("k", "x", 1) + END))
    for command, after in (("append", "old-"), ("prepend", "-old")):
        yield case(
            command,
            asks(f"{command} k 0 0 1\r\n-\r\n", "STORED\r\n"),
            asks("get k\r\n", value("k", after, 3) + END),
            setup=[k],
        )
        yield case(f"{command} to nothing", asks(f"{command} k 0 0 1\r\n-\r\n", missing[0]), asks("get k\r\n", END))
    yield case("replace", asks("replace k 0 0 1\r\nx\r\n", "STORED\r\n"), asks("get k\r\n", value("k", "x") + END), setup=[k])
    cas = "ms k 3 E100\r\nold\r\n"
    yield case(
        "cas with the right id",
        asks("cas k 0 0 3 100\r\nnew\r\n", "STORED\r\n"),
        asks("get k\r\n", value("k", "new") + END),
        setup=[cas],
    )
    yield case("cas of nothing", asks("cas k 0 0 3 100\r\nnew\r\n", "NOT_FOUND\r\n"), asks("get k\r\n", END))
    yield case("delete", asks("delete k\r\n", "DELETED\r\n"), asks("delete k\r\n", "NOT_FOUND\r\n"), setup=[k])
    n = stored("n", "10")
    yield case("incr", asks("incr n 5\r\n", "15\r\n"), asks("get n\r\n", value("n", "15") + END), setup=[n])
    yield case("decr", asks("decr n 3\r\n", "7\r\n"), setup=[n])
    yield case("decr stops at 0", asks("decr n 11\r\n", "0\r\n"), setup=[n])
    yield case("incr wraps", asks("incr n 1\r\n", "0\r\n"), setup=[stored("n", str(2**64 - 1))])
    yield case("incr of nothing", asks("incr n 1\r\n", "NOT_FOUND\r\n"), asks("get n\r\n", END))
    words = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
    yield case("incr of words", asks("incr k 1\r\n", words), setup=[k])
    yield case("incr by words", asks("incr n x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"), setup=[n])
    yield case(
        "touch",
        asks("touch k 100\r\n", "TOUCHED\r\n"),
        asks("touch none 100\r\n", "NOT_FOUND\r\n"),
        waits(50),
        asks("get k\r\n", value("k", "old", 3) + END),
        waits(60),
        asks("get k\r\n", END),
        setup=[k],
    )


def meta_cases():
    k = "ms k 5 F7 E100\r\nhello\r\n"
    yield case("get", asks("mg k v\r\n", "VA 5\r\nhello\r\n"), setup=[k])
    yield case("get without a flag", asks("mg k\r\n", "HD\r\n"), setup=[k])
    yield case("get of nothing", asks("mg k v\r\n", "EN\r\n"))
    yield case("get, quietly, of nothing", asks("mg k v q\r\nmn\r\n", "MN\r\n"))
    yield case("flags come back in their order", asks("mg k s v f k Oabc c t\r\n", "VA 5 s5 f7 kk Oabc c100 t-1\r\nhello\r\n"), setup=[k])
    yield case("base64 key", asks("mg Zm9v b v k\r\n", "VA 3 kZm9v b\r\nbar\r\n"), setup=["ms Zm9v 3 b\r\nbar\r\n"])
    yield case("set", asks("ms k 3 F9 T0\r\nnew\r\n", "HD\r\n"), asks("mg k v f\r\n", "VA 3 f9\r\nnew\r\n"))
    yield case("set, quietly", asks("ms k 3 q\r\nnew\r\n"), asks("mg k v\r\n", "VA 3\r\nnew\r\n"))
    yield case("mode add", asks("ms k 1 ME\r\nx\r\n", "NS\r\n"), asks("ms l 1 ME\r\nx\r\n", "HD\r\n"), setup=[k])
    yield case("mode replace", asks("ms k 1 MR\r\nx\r\n", "HD\r\n"), asks("ms l 1 MR\r\nx\r\n", "NS\r\n"), setup=[k])
    yield case(
        "modes append and prepend",
        asks("ms k 1 MA\r\n>\r\n", "HD\r\n"),
        asks("ms k 1 MP\r\n<\r\n", "HD\r\n"),
        asks("mg k v f\r\n", "VA 7 f7\r\n<hello>\r\n"),
        setup=[k],
    )
    yield case("compare and swap", asks("ms k 1 C99\r\nx\r\n", "EX\r\n"), asks("ms k 1 C100 E7 c\r\nx\r\n", "HD c7\r\n"), setup=[k])
    yield case("arithmetic", asks("ma n D5 v\r\n", "VA 2\r\n15\r\n"), asks("ma n MD D20 v\r\n", "VA 1\r\n0\r\n"), setup=[stored("n", "10")])
    yield case("arithmetic on nothing", asks("ma n\r\n", "NF\r\n"), asks("ma n N0 J13 v\r\n", "VA 2\r\n13\r\n"))
    yield case("delete", asks("md k\r\n", "HD\r\n"), asks("md k\r\n", "NF\r\n"), setup=[k])
    yield case("delete compares", asks("md k C99\r\n", "EX\r\n"), asks("md k C100\r\n", "HD\r\n"), setup=[k])
    yield case("noop", asks("mn\r\n", "MN\r\n"))


ANY_CAS = "xx" * 8
STATUS_TEXT = {0: b"", 1: b"Not found", 2: b"Data exists for key."}


def binary(magic: int, opcode: int, status: int, extras: bytes, key: bytes, text: bytes, opaque: int, cas: int) -> bytes:
    body = len(extras) + len(key) + len(text)
    return struct.pack(">BBHBBHIIQ", magic, opcode, len(key), len(extras), 0, status, body, opaque, cas) + extras + key + text


def says(opcode: int, key: bytes = b"", extras: bytes = b"", text: bytes = b"", cas: int = 0) -> bytes:
    return binary(0x80, opcode, 0, extras, key, text, 0xA1B2C3D4, cas)


def hears(opcode: int, status: int = 0, key: bytes = b"", extras: bytes = b"", text: bytes = b"", cas: int = 0) -> bytes:
    return binary(0x81, opcode, status, extras, key, text or STATUS_TEXT[status], 0xA1B2C3D4, cas)


def binary_cases():
    k = "ms k 5 F7 E100\r\nhello\r\n"
    flags = struct.pack(">I", 7)
    yield case("get", asks(says(0, b"k"), hears(0, extras=flags, text=b"hello", cas=100)), setup=[k])
    yield case("get of nothing", asks(says(0, b"k"), hears(0, 1)))
    yield case("getk", asks(says(0x0C, b"k"), hears(0x0C, key=b"k", extras=flags, text=b"hello", cas=100)), setup=[k])
    yield case("getq of nothing, then noop", asks(says(9, b"k") + says(10), hears(10)))
    # The server chooses the CAS id. Without a UDP checksum nothing else depends on it.
    silent = Form(checksum=False)
    answer = replies(hears(1), silent)[0].hex()
    cas_at = 2 * (14 + 20 + 8 + 8 + 16)
    yield case(
        "set",
        sends(request(says(1, b"k", struct.pack(">II", 9, 0), b"new"), silent), [answer[:cas_at] + ANY_CAS + answer[cas_at + 16 :]]),
        asks("get k\r\n", value("k", "new", 9) + END),
    )
    yield case("setq", asks(says(0x11, b"k", bytes(8), b"new")), asks("get k\r\n", value("k", "new") + END))
    yield case("add to what is there", asks(says(2, b"k", bytes(8), b"x"), hears(2, 2)), setup=[k])
    yield case("replace of nothing", asks(says(3, b"k", bytes(8), b"x"), hears(3, 1)))
    yield case("set with another CAS id", asks(says(1, b"k", bytes(8), b"x", cas=99), hears(1, 2)), setup=[k])
    yield case("delete", asks(says(4, b"k"), hears(4)), asks(says(4, b"k"), hears(4, 1)), setup=[k])


def options(next_header: int = UDP) -> bytes:
    """An IPv6 extension header with eight bytes of padding options."""
    return bytes([next_header]) + b"\0\1\4\0\0\0\0"


def form_cases():
    k = stored("k", "hello")
    hit = value("k", "hello") + END
    small_padded = PLAIN.with_(padding=bytes(6))
    forms = {
        "plain": PLAIN,
        "one VLAN tag (802.1Q)": VLAN,
        "one VLAN tag (802.1ad)": Form(tags=((0x88A8, 0x0001),)),
        "two VLAN tags": QINQ,
        "two VLAN tags of the same kind": Form(tags=((0x8100, 5), (0x8100, 0xFFFF))),
        "IPv6": IPV6,
        "IPv6 in a VLAN": Form(version=6, tags=VLAN.tags),
        "IPv6 in two VLANs": Form(version=6, tags=QINQ.tags),
        "no UDP checksum": Form(checksum=False),
        "no UDP checksum in two VLANs": Form(checksum=False, tags=QINQ.tags),
        "IP options are not repeated": Form(options=b"\x07\x07\x04\0\0\0\0\x01"),
        "as many IP options as there can be": Form(options=b"\x01" * 40),
        "traffic class, lifetime and identification are not repeated": Form(
            traffic_class=0x2E, hop_limit=1, identification=0xFFFF
        ),
        "IPv6 hop limit of 0": Form(version=6, hop_limit=0),
        "padding": small_padded,
        "padding that is not zero": PLAIN.with_(padding=b"\xff" * 9),
        "IPv6, padding": IPV6.with_(padding=bytes(3)),
        "IPv6 hop-by-hop options are not repeated": IPV6.with_(protocol=0, extension=options()),
        "IPv6 destination options": IPV6.with_(protocol=60, extension=options()),
        "IPv6 routing header, no segments left": IPV6.with_(protocol=43, extension=b"\x11" + bytes(7)),
        "four IPv6 extension headers in two VLANs": Form(
            version=6, tags=QINQ.tags, protocol=0, extension=options(60) + options(43) + b"\x3c\1" + bytes(14) + options()
        ),
        "IPv6 extension headers of 256 bytes": IPV6.with_(protocol=60, extension=b"\x11\x1f\1\xfc" + bytes(252)),
        "IPv6 options that may be ignored": IPV6.with_(protocol=0, extension=b"\x11\1\5\2\0\0\x3e\x08optional"),
        "bytes between the ends of UDP and IP": PLAIN.with_(udp_rest=b"options"),
        "fragments allowed": PLAIN.with_(fragment=0),
        "the reserved flag": PLAIN.with_(fragment=0x8000),
        "another client": PLAIN.with_(client_port=1, from_mac=bytes.fromhex("0a0b0c0d0e0f")),
        "a client on the server's port": PLAIN.with_(client_port=11211),
    }
    for name, form in forms.items():
        yield case(name, asks("get k\r\n", hit, form, 0x0102), asks("get none\r\n", END, form, 0x0103), setup=[k])
    for number in (0, 1, 255, 256, 0x1234, 0xFFFF):
        yield case(f"request id {number} comes back", asks("get k\r\n", hit, PLAIN, number), setup=[k])
    raw = frame(memcached_header(5, 0, 1, 0xBEEF) + b"get k\r\n")
    yield case("the reserved field does not matter", sends(raw, replies(hit.encode(), PLAIN, 5)), setup=[k])
    # Two bytes of the value take up the checksum, so that it comes out as 0: written 0xffff.
    probe = replies((value("zz", "zz\0\0") + END).encode())[0][40:42]
    text = "zz" + probe.decode("latin-1")
    out = replies((value("zz", text) + END).encode("latin-1"))
    assert out[0][40:42] == b"\xff\xff"
    yield case("a UDP checksum that comes out as 0", sends(request(b"get zz\r\n"), out), setup=[stored("zz", text)])


def corrupted(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0x10]) + raw[at + 1 :]


def dropped_frames():
    """name: (frame, verdict)"""
    text = memcached_header(1) + b"get k\r\n"
    plain, six = frame(text), frame(text, IPV6)

    def changed(verdict: str, form: Form = PLAIN, **changes):
        return frame(text, form.with_(**changes)), verdict

    yield "IPv4 header checksum", corrupted(plain, 24), "bad_checksum"
    yield "UDP checksum", corrupted(plain, 40), "bad_checksum"
    yield "a bit of the payload", corrupted(plain, len(plain) - 5), "bad_checksum"
    yield "a bit of an IPv6 address", corrupted(six, 14 + 8 + 15), "bad_checksum"
    yield "IPv6 without UDP checksum", *changed("bad_checksum", IPV6, udp_checksum=0)
    for name, raw, sizes in (("IPv4", plain, (0, 13, 14, 33, 34, 41, 42, 50)), ("IPv6", six, (14, 53, 54, 61, 62))):
        for size in sizes:
            yield f"{name} cut after {size} bytes", raw[:size], "truncated"
    yield "cut after a VLAN tag", frame(text, VLAN)[:16], "truncated"
    yield "IPv4 length beyond the frame", *changed("truncated", ip_size=300)
    yield "IPv4 length below its header", *changed("truncated", ip_size=19)
    yield "IPv4 header length below 20", *changed("truncated", ip_first=0x44)
    yield "UDP length beyond IP", *changed("truncated", udp_size=100)
    yield "UDP length below its header", *changed("truncated", udp_size=7)
    yield "IPv6 length beyond the frame", *changed("truncated", IPV6, ip_size=100)
    yield "first fragment", *changed("fragment", fragment=0x2000)
    yield "later fragment", *changed("fragment", fragment=0x0003)
    yield "IPv6 fragment", *changed("fragment", IPV6, protocol=44, extension=b"\x11\0\0\0\0\0\0\1")
    yield "IPv6 fragment behind options", *changed("fragment", IPV6, protocol=0, extension=options(44) + b"\x11\0\0\0\0\0\0\1")
    yield "IPv6 segments left", *changed("unsupported", IPV6, protocol=43, extension=b"\x11\0\0\1\0\0\0\0")
    yield "IPv6 hop-by-hop options twice", *changed("unsupported", IPV6, protocol=0, extension=options(0) + options())
    yield (
        "IPv6 hop-by-hop options behind others",
        *changed("unsupported", IPV6, protocol=60, extension=options(0) + options()),
    )
    yield "five IPv6 extension headers", *changed("unsupported", IPV6, protocol=60, extension=options(60) * 4 + options())
    yield (
        "IPv6 extension headers of 264 bytes",
        *changed("unsupported", IPV6, protocol=0, extension=options(60) + b"\x11\x1f\1\xfc" + bytes(252)),
    )
    for name, option in (("jumbo payload", b"\xc2\4\0\1\0\0"), ("home address", b"\xc9\4home"), ("to be discarded", b"\x7e\4drop")):
        yield f"IPv6 option: {name}", *changed("unsupported", IPV6, protocol=60, extension=b"\x11\0" + option)
    yield "IPv6 option beyond its header", *changed("truncated", IPV6, protocol=60, extension=b"\x11\0\1\5\0\0\0\0")
    yield "IPv6 extension header beyond the datagram", *changed("truncated", IPV6, protocol=0, extension=b"\x11\x20\1\4\0\0\0\0")
    yield "nothing behind IPv6 options", *(frame(b"", IPV6.with_(protocol=0, extension=options(), ip_size=8)), "truncated")
    yield "IPv4 EtherType with IP version 6", *changed("unsupported", ip_first=0x65)
    yield "IPv6 EtherType with IP version 4", *changed("unsupported", IPV6, ip_first=0x45)
    yield "three VLAN tags", *changed("unsupported", tags=QINQ.tags + VLAN.tags)
    yield "another port", *changed("not_for_us", port=11212)
    yield "port with its bytes exchanged", *changed("not_for_us", port=0xCB2B)
    yield "source port 0 cannot be answered", *changed("not_for_us", client_port=0)
    yield "TCP", *changed("not_for_us", protocol=6)
    yield "ICMPv6", *changed("not_for_us", IPV6, protocol=58)
    yield "ICMPv6 behind options", *changed("not_for_us", IPV6, protocol=0, extension=options(58))
    yield "ARP", *changed("not_for_us", ether_type=0x0806)
    yield "a length where the EtherType is", *changed("not_for_us", ether_type=0x0031)
    yield "Ethernet broadcast", *changed("not_for_us", to_mac=b"\xff" * 6)
    yield "Ethernet multicast as source", *changed("not_for_us", from_mac=b"\x01" + bytes(5))
    yield "IPv4 multicast", *changed("not_for_us", to_ip=bytes([224, 0, 0, 1]))
    yield "IPv4 broadcast as source", *changed("not_for_us", from_ip=b"\xff" * 4)
    yield "no IPv4 source address", *changed("not_for_us", from_ip=b"\0\0\0\0")
    yield "IPv6 multicast", *changed("not_for_us", IPV6, to_ip=bytes.fromhex("ff02" + "00" * 13 + "01"))
    yield "no IPv6 source address", *changed("not_for_us", IPV6, from_ip=bytes(16))
    yield "nothing in the datagram", frame(b""), "malformed"
    yield "half a memcached header", frame(memcached_header(1)[:4]), "malformed"
    yield "nothing behind the memcached header", frame(memcached_header(1)), "malformed"
    for size in (1, 8, 16, 23):
        yield f"{size} bytes of a binary header", frame(memcached_header(1) + b"\x80\x02\0\1\x08\0\0\0\0\0\0\x0a".ljust(24, b"\0")[:size]), "request"
    yield "first datagram of several", frame(memcached_header(1, 0, 2) + b"get k\r\n"), "malformed"
    yield "second datagram of several", frame(memcached_header(1, 1, 2) + b"get k\r\n"), "malformed"
    yield "no datagrams at all", frame(memcached_header(1, 0, 0) + b"get k\r\n"), "malformed"


def dropped_cases():
    hit = value("k", "hello") + END
    for name, raw, verdict in dropped_frames():
        yield case(name, sends(raw, [], verdict), asks("get k\r\n", hit, request_id=2), setup=[stored("k", "hello")])


def pattern(size: int) -> str:
    return "".join(chr(33 + i * 7 % 94) for i in range(size))


def large_cases():
    for form, name in ((PLAIN, "IPv4"), (Form(version=6, tags=QINQ.tags), "IPv6 in two VLANs"), (Form(checksum=False), "no checksum")):
        text = pattern(5000)
        yield case(f"four datagrams, {name}", asks("get k\r\n", value("k", text) + END, form, 77), setup=[stored("k", text)])
    head_and_tail = len(value("k", "x" * 1000)) - 1000 + len(END)
    for room in (1391, 1392, 1393, 2783, 2784, 2785):
        text = pattern(room - head_and_tail)
        yield case(f"reply of {room} bytes", asks("get k\r\n", value("k", text) + END), setup=[stored("k", text)])
    text = pattern(700)
    whole = value("a", text) + value("b", text) + value("a", text) + END
    yield case("several keys go on across datagrams", asks("get a b a\r\n", whole), setup=[stored("a", text), stored("b", text)])
    text = pattern(20000)
    yield case("meta get of 20000 bytes", asks("mg k v\r\n", f"VA 20000\r\n{text}\r\n"), setup=[stored("k", text)])
    text = pattern(1300)
    yield case("set and get of 1300 bytes", asks(stored("k", text), "STORED\r\n"), asks("get k\r\n", value("k", text) + END))


def regression_cases():
    """What the published code of MemcachedGPU (2015) answered wrongly; `why` says how that came about."""
    why = "keys were compared in whole words: the bytes behind the last did not count"
    for size in (3, 5, 7, 9, 11, 13, 15, 17, 31, 33):
        stem = ("prefix" * 10)[: size - 1]
        yield case(
            f"keys of {size} bytes that differ in the last",
            asks(f"get {stem}b\r\n", END),
            asks(stored(stem + "b", "two"), "STORED\r\n"),
            asks(f"get {stem}a {stem}b\r\n", value(stem + "a", "one") + value(stem + "b", "two") + END),
            setup=[stored(stem + "a", "one")],
            why=why,
        )
    why = "lengths were not compared"
    for short, long in (("abc", "abcd"), ("abcd", "abcde"), ("abcdefgh", "abcdefghi"), ("abcd", "abcd" * 4), ("k", "k" * 250)):
        name = f"{len(short)} bytes and the same with {len(long) - len(short)} more"
        yield case(f"get: {name}", asks(f"get {long}\r\n", END), asks(f"get {short}\r\n", value(short, "1") + END), setup=[stored(short, "1")], why=why)
        yield case(f"delete: {name}", asks(f"delete {short}\r\n", "NOT_FOUND\r\n"), asks(f"get {long}\r\n", value(long, "2") + END), setup=[stored(long, "2")], why=why)
    why = "every storage command was carried out as set"
    old = value("k", "old") + END
    exists = ["ms k 3 E100\r\nold\r\n"]
    yield case("add does not replace", asks("add k 0 0 3\r\nnew\r\n", "NOT_STORED\r\n"), asks("get k\r\n", old), setup=exists, why=why)
    yield case("replace does not add", asks("replace k 0 0 3\r\nnew\r\n", "NOT_STORED\r\n"), asks("get k\r\n", END), why=why)
    yield case("cas compares", asks("cas k 0 0 3 99\r\nnew\r\n", "EXISTS\r\n"), asks("get k\r\n", old), setup=exists, why=why)
    yield case(
        "items expire",
        asks("get k\r\n", old),
        waits(20),
        asks("get k\r\n", END),
        asks("add k 0 0 3\r\nnew\r\n", "STORED\r\n"),
        setup=[stored("k", "old", 0, 10)],
        why="the time to live was not looked at",
    )
    yield case("a negative time to live", asks("get k\r\n", END), setup=[stored("k", "old", 0, -1)], why="the time to live was not looked at")
    yield case(
        "keys over 250 bytes are refused, not cut",
        asks(f"get {'k' * 251}\r\n", "CLIENT_ERROR bad command line format\r\n"),
        asks(f"get {'k' * 250}\r\n", value("k" * 250, "x") + END),
        setup=[stored("k" * 250, "x")],
        why="longer keys were copied beyond their buffer",
    )
    yield case(
        "a datagram without memcached's header",
        sends(frame(b"get k\r\n"), [], "malformed"),
        asks("get k\r\n", old),
        setup=exists,
        why="the header was skipped unread",
    )
    ids = ((0xFFFF, "a"), (0, "b"), (258, "c"))
    yield case(
        "each reply has the id of its own request",
        *(asks(f"get {key}\r\n", value(key, key) + END, request_id=number) for number, key in ids),
        setup=[stored(key, key) for key in "abc"],
        why="replies had no memcached header",
    )
    yield case(
        "a short key ends where its line ends",
        asks("get k\r\nget none\r\n", old + END),
        setup=exists,
        why="the first 16 bytes were taken for the key whatever they were",
    )
    yield case(
        "a blank ends a key",
        asks("get k none-of-these-keys k\r\n", value("k", "old") * 2 + END),
        setup=exists,
        why="all up to the line's end was taken for one key",
    )
    no_ip_checksum = frame(memcached_header(1) + b"get k\r\n")
    no_ip_checksum = no_ip_checksum[:24] + b"\0\0" + no_ip_checksum[26:]
    yield case(
        "an IPv4 header has a checksum",
        sends(no_ip_checksum, [], "bad_checksum"),
        asks("get k\r\n", old),
        setup=exists,
        why="a checksum of 0 was taken for none",
    )


TOPICS = {
    "get": ("get, gets, gat, gats", get_cases),
    "keys": ("Keys of all lengths", key_cases),
    "store": ("Commands that change something", store_cases),
    "meta": ("The meta commands", meta_cases),
    "binary": ("The binary protocol", binary_cases),
    "headers": ("Forms of requests that must be answered, and what of a request comes back", form_cases),
    "dropped": ("Frames that must not be answered, and disturb nothing", dropped_cases),
    "large": ("Replies of several datagrams", large_cases),
    "memcachedgpu": ("Known defects of the MemcachedGPU code of 2015", regression_cases),
}


def main() -> None:
    CASES.mkdir(exist_ok=True)
    for topic, (about, cases) in TOPICS.items():
        content = {"about": about, "udp_port": 11211, "cases": list(cases())}
        (CASES / f"{topic}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
