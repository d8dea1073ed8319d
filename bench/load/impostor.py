# SPDX-License-Identifier: Apache-2.0
"""A server that answers as a test wants, for what no real server does."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager


@contextmanager
def impostor(answer):
    """A server that answers each piece of input by answer(input); None closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(sock: socket.socket) -> None:
        with sock:
            while data := sock.recv(65536):
                reply = answer(data)
                if reply is None:
                    return
                sock.sendall(reply)

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=guarded, args=(sock,), daemon=True).start()

    def guarded(sock: socket.socket) -> None:
        try:
            serve(sock)
        except OSError:
            pass  # the generator has gone

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
