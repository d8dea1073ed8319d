# SPDX-License-Identifier: Apache-2.0
"""Ethernet frames with memcached's UDP datagrams in them, as clients send them and servers must answer."""

from __future__ import annotations

import dataclasses
import struct

SERVER_MAC = bytes.fromhex("020000000001")
CLIENT_MAC = bytes.fromhex("020000000002")
SERVER = {4: bytes([198, 51, 100, 11]), 6: bytes.fromhex("20010db8" + "00" * 11 + "0b")}
CLIENT = {4: bytes([192, 0, 2, 10]), 6: bytes.fromhex("20010db8" + "00" * 11 + "0a")}
PORT = 11211
UDP = 17
FRAME_MIN = 60
DATAGRAM_MAX = 1400  # with memcached's header


def checksum(data: bytes) -> int:
    """RFC 1071."""
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def put16(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + struct.pack(">H", value) + data[at + 2 :]


@dataclasses.dataclass(frozen=True)
class Form:
    """How a client's frames look. The fields after `port` are for frames with something wrong."""

    version: int = 4
    tags: tuple[tuple[int, int], ...] = ()  # (EtherType, tag control information)
    checksum: bool = True  # of UDP
    options: bytes = b""  # IPv4
    traffic_class: int = 0
    hop_limit: int = 64
    identification: int = 0x1234  # IPv4
    flow_label: int = 0x12345  # IPv6
    padding: bytes = b""  # after the IP datagram
    udp_rest: bytes = b""  # between the ends of UDP and IP
    client_port: int = 40000
    port: int = PORT
    to_mac: bytes = SERVER_MAC
    from_mac: bytes = CLIENT_MAC
    to_ip: bytes = b""
    from_ip: bytes = b""
    fragment: int = 0x4000  # flags and offset of IPv4
    protocol: int = UDP
    ip_first: int | None = None  # the first byte of the IP header
    ip_size: int | None = None  # what the IP header says
    udp_size: int | None = None
    udp_checksum: int | None = None
    extension: bytes = b""  # IPv6 headers before UDP; `protocol` is then the first of them
    ether_type: int | None = None

    def with_(self, **changes) -> Form:
        return dataclasses.replace(self, **changes)


PLAIN = Form()


def ethernet(form: Form, to: bytes, source: bytes) -> bytes:
    tags = b"".join(struct.pack(">HH", *tag) for tag in form.tags)
    ether_type = {4: 0x0800, 6: 0x86DD}[form.version] if form.ether_type is None else form.ether_type
    return to + source + tags + struct.pack(">H", ether_type)


def ipv4(form: Form, source: bytes, to: bytes, size: int) -> bytes:
    header_size = 20 + len(form.options)
    first = 0x40 | header_size // 4 if form.ip_first is None else form.ip_first
    total = header_size + size if form.ip_size is None else form.ip_size
    fields = (first, form.traffic_class, total, form.identification, form.fragment, form.hop_limit, form.protocol, 0)
    header = struct.pack(">BBHHHBBH", *fields) + source + to + form.options
    covered = min(len(header), (first & 15) * 4)
    return put16(header, 10, checksum(header[:covered]))


def ipv6(form: Form, source: bytes, to: bytes, size: int) -> bytes:
    first = 0x60 if form.ip_first is None else form.ip_first
    word = first << 24 | form.traffic_class << 20 | form.flow_label
    size = len(form.extension) + size if form.ip_size is None else form.ip_size
    return struct.pack(">IHBB", word, size, form.protocol, form.hop_limit) + source + to + form.extension


def udp(form: Form, source: bytes, to: bytes, ports: tuple[int, int], payload: bytes) -> bytes:
    size = 8 + len(payload) if form.udp_size is None else form.udp_size
    datagram = struct.pack(">HHHH", *ports, size, 0) + payload
    pseudo = source + to + struct.pack(">HH", UDP, size)
    value = (checksum(pseudo + datagram) or 0xFFFF) if form.checksum else 0
    return put16(datagram, 6, value if form.udp_checksum is None else form.udp_checksum)


def memcached_header(request_id: int, sequence: int = 0, count: int = 1, reserved: int = 0) -> bytes:
    return struct.pack(">HHHH", request_id, sequence, count, reserved)


def frame(payload: bytes, form: Form = PLAIN) -> bytes:
    """A client's frame that carries `payload`, memcached's header in it."""
    source = form.from_ip or CLIENT[form.version]
    to = form.to_ip or SERVER[form.version]
    datagram = udp(form, source, to, (form.client_port, form.port), payload) + form.udp_rest
    ip = (ipv4 if form.version == 4 else ipv6)(form, source, to, len(datagram))
    return ethernet(form, form.to_mac, form.from_mac) + ip + datagram + form.padding


def request(text: bytes, form: Form = PLAIN, request_id: int = 1) -> bytes:
    return frame(memcached_header(request_id) + text, form)


def replies(text: bytes, form: Form = PLAIN, request_id: int = 1) -> list[bytes]:
    """The frames that answer a client's `form` with `text`."""
    room = DATAGRAM_MAX - 8
    pieces = [text[at : at + room] for at in range(0, len(text), room)]
    answer = Form(version=form.version, tags=form.tags, checksum=form.checksum, identification=0, flow_label=0)
    source, to = SERVER[form.version], CLIENT[form.version]
    out = []
    for number, piece in enumerate(pieces):
        payload = memcached_header(request_id, number, len(pieces)) + piece
        datagram = udp(answer, source, to, (form.port, form.client_port), payload)
        ip = (ipv4 if form.version == 4 else ipv6)(answer, source, to, len(datagram))
        out.append((ethernet(answer, form.from_mac, form.to_mac) + ip + datagram).ljust(FRAME_MIN, b"\0"))
    return out
