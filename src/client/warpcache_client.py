# SPDX-License-Identifier: Apache-2.0
"""Python over include/warpcache/client.h, by ctypes. Used by one thread at a time.

    client = Client("libwarpcache_client.so")
    client.add_server("127.0.0.1", 11211, ucx_port=11212)
    client.set("greeting", b"hello")
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p

OK, NOT_FOUND, NOT_STORED, EXISTS, BAD_ARGUMENT, NO_SERVER, TIMEOUT, SERVER_ERROR, NO_SPACE, NO_MEMORY = range(10)
USUAL_MAX = 64 * 1024  # a larger value is asked for twice

_FOUND = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_uint32, c_uint64)
_STORE = (c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_uint32, c_uint32)
_CONCAT = (c_void_p, c_char_p, c_size_t, c_char_p, c_size_t)
_COUNT = (c_void_p, c_char_p, c_size_t, c_uint64, POINTER(c_uint64))
_ARGUMENTS = {
    "add_server": (c_void_p, c_char_p, c_uint16, c_uint16),
    "get": (c_void_p, c_char_p, c_size_t, c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_uint32), POINTER(c_uint64)),
    "mget": (c_void_p, POINTER(c_char_p), POINTER(c_size_t), c_size_t, _FOUND, c_void_p),
    "set": _STORE,
    "add": _STORE,
    "replace": _STORE,
    "append": _CONCAT,
    "prepend": _CONCAT,
    "cas": (*_STORE, c_uint64),
    "incr": _COUNT,
    "decr": _COUNT,
    "delete": (c_void_p, c_char_p, c_size_t),
    "touch": (c_void_p, c_char_p, c_size_t, c_uint32),
    "use_one_sided": (c_void_p, c_int),
}


class ClientError(Exception):
    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


class Client:
    def __init__(self, library: str = "libwarpcache_client.so.0"):
        self._library = ctypes.CDLL(library)
        self._library.warpcache_create.restype = c_void_p
        for name in ("last_error", "status_text", "transport"):
            getattr(self._library, f"warpcache_{name}").restype = c_char_p
        self._library.warpcache_last_error.argtypes = (c_void_p,)
        self._library.warpcache_transport.argtypes = (c_void_p, c_char_p, c_size_t)
        self._library.warpcache_free.argtypes = (c_void_p,)
        self._library.warpcache_one_sided_reads.argtypes = (c_void_p,)
        self._library.warpcache_one_sided_reads.restype = c_uint64
        self._library.warpcache_set_timeout_ms.argtypes = (c_void_p, c_uint32)
        for name, arguments in _ARGUMENTS.items():
            getattr(self._library, f"warpcache_{name}").argtypes = arguments
        self._client = self._library.warpcache_create()
        if not self._client:
            raise MemoryError

    def close(self) -> None:
        if self._client:
            self._library.warpcache_free(self._client)
            self._client = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _call(self, name: str, *arguments, usual: tuple[int, ...] = ()) -> int:
        """The status, if it is OK or one of `usual`; else raises."""
        status = getattr(self._library, f"warpcache_{name}")(self._client, *arguments)
        if status != OK and status not in usual:
            text = self._library.warpcache_last_error(self._client) or self._library.warpcache_status_text(status)
            raise ClientError(status, text.decode(errors="replace"))
        return status

    def add_server(self, host: str, tcp_port: int, ucx_port: int = 0) -> None:
        self._call("add_server", host.encode(), tcp_port, ucx_port)

    def set_timeout_ms(self, timeout_ms: int) -> None:
        self._library.warpcache_set_timeout_ms(self._client, timeout_ms)

    def use_one_sided(self, on: bool = True) -> None:
        """An experiment, before the first request: see the header."""
        self._call("use_one_sided", on)

    def one_sided_reads(self) -> int:
        return self._library.warpcache_one_sided_reads(self._client)

    def transport(self, key: str | bytes) -> str:
        """How the key's server is reached: "ucx", "tcp" or ""."""
        key = _bytes(key)
        return self._library.warpcache_transport(self._client, key, len(key)).decode()

    def get(self, key: str | bytes) -> bytes | None:
        return (self.gets(key) or (None,))[0]

    def gets(self, key: str | bytes) -> tuple[bytes, int, int] | None:
        """Value, flags and CAS id."""
        key = _bytes(key)
        capacity = USUAL_MAX
        while True:
            buffer = ctypes.create_string_buffer(capacity)
            size, flags, cas = c_size_t(), c_uint32(), c_uint64()
            status = self._call("get", key, len(key), buffer, capacity, byref(size), byref(flags), byref(cas), usual=(NOT_FOUND, NO_SPACE))
            if status == NOT_FOUND:
                return None
            if status == OK:
                return buffer.raw[: size.value], flags.value, cas.value
            capacity = size.value

    def mget(self, keys: list[str | bytes]) -> dict[bytes, bytes]:
        encoded = [_bytes(key) for key in keys]
        found: dict[bytes, bytes] = {}

        def take(_, key, key_size, value, value_size, flags, cas):
            found[ctypes.string_at(key, key_size)] = ctypes.string_at(value, value_size)

        texts = (c_char_p * len(encoded))(*encoded)
        sizes = (c_size_t * len(encoded))(*map(len, encoded))
        self._call("mget", texts, sizes, len(encoded), _FOUND(take), None)
        return found

    def _store(self, name: str, key, value, *more) -> bool:
        key, value = _bytes(key), _bytes(value)
        return self._call(name, key, len(key), value, len(value), *more, usual=(NOT_STORED, NOT_FOUND, EXISTS)) == OK

    def set(self, key, value, expiry: int = 0, flags: int = 0) -> bool:
        return self._store("set", key, value, expiry, flags)

    def add(self, key, value, expiry: int = 0, flags: int = 0) -> bool:
        return self._store("add", key, value, expiry, flags)

    def replace(self, key, value, expiry: int = 0, flags: int = 0) -> bool:
        return self._store("replace", key, value, expiry, flags)

    def append(self, key, value) -> bool:
        return self._store("append", key, value)

    def prepend(self, key, value) -> bool:
        return self._store("prepend", key, value)

    def cas(self, key, value, cas: int, expiry: int = 0, flags: int = 0) -> bool:
        return self._store("cas", key, value, expiry, flags, cas)

    def _count(self, name: str, key, delta: int) -> int | None:
        key, number = _bytes(key), c_uint64()
        status = self._call(name, key, len(key), delta, byref(number), usual=(NOT_FOUND,))
        return number.value if status == OK else None

    def incr(self, key, delta: int = 1) -> int | None:
        return self._count("incr", key, delta)

    def decr(self, key, delta: int = 1) -> int | None:
        return self._count("decr", key, delta)

    def delete(self, key) -> bool:
        key = _bytes(key)
        return self._call("delete", key, len(key), usual=(NOT_FOUND,)) == OK

    def touch(self, key, expiry: int) -> bool:
        key = _bytes(key)
        return self._call("touch", key, len(key), expiry, usual=(NOT_FOUND,)) == OK
