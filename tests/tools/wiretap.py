# SPDX-License-Identifier: Apache-2.0
"""Shows the bytes that a client and a server exchange: for finding where two servers differ.

    python3 tests/tools/wiretap.py 127.0.0.1:11211 -- memcstat -s ADDRESS

runs the command with ADDRESS (and HOST, PORT) replaced by a relay in front of the server, and
prints every piece that passed, with the number of its connection and its direction.
"""

import socket
import subprocess
import sys
import threading

SHOWN_BYTES_MAX = 400


def pump(source, sink, label):
    """Relays one direction until either side closes."""
    try:
        while data := source.recv(1 << 16):
            rest = len(data) - SHOWN_BYTES_MAX
            more = f" and {rest} bytes more" if rest > 0 else ""
            print(f"{label} {data[:SHOWN_BYTES_MAX]!r}{more}", flush=True)
            sink.sendall(data)
        print(f"{label} closed", flush=True)
        sink.shutdown(socket.SHUT_WR)
    except OSError as error:
        print(f"{label} {error}", flush=True)


def relay(listener, server):
    """Accepts connections for ever, each relayed to the server by two threads."""
    number = 0
    while True:
        client, _ = listener.accept()
        upstream = socket.create_connection(server)
        for one in (client, upstream):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ends, mark in (((client, upstream), ">"), ((upstream, client), "<")):
            threading.Thread(target=pump, args=(*ends, f"{number}{mark}"), daemon=True).start()
        number += 1


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    host, _, port = arguments[0].rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=relay, args=(listener, (host, int(port))), daemon=True).start()
    own = listener.getsockname()[1]
    command = [
        word.replace("ADDRESS", f"127.0.0.1:{own}")
        .replace("PORT", str(own))
        .replace("HOST", "127.0.0.1")
        for word in arguments[2:]
    ]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
