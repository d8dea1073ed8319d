# SPDX-License-Identifier: Apache-2.0
"""A client that is killed in the middle of everything. Arguments: port, connections, seed.

Leaves every connection in another place of a request or a reply, says "ready", and waits for its
end.
"""

import random
import socket
import sys
import time

VALUE = 300_000
REQUESTS = (
    b"set killed 0 0 10\r\n0123456789\r\n",
    b"set killed 0 0 40000\r\n" + b"k" * 40000 + b"\r\n",
    b"set killed-big 0 0 %d\r\n" % VALUE + b"K" * VALUE + b"\r\n",
    b"ms killed 10 T100 c\r\n0123456789\r\n",
    b"get kept " + b"missed " * 200 + b"\r\n",
    b"\x80\x01\0\x06\x08\0\0\0\0\0\0\x12" + bytes(20) + b"killed1234",
    b"\x80\x01\0\x06\x08\0\0\0\0\x04\x93\xee" + bytes(20) + b"killed" + b"B" * VALUE,
)


def main() -> None:
    port, count, seed = (int(word) for word in sys.argv[1:])
    chance = random.Random(seed)
    socks = []
    for _ in range(count):
        sock = socket.create_connection(("127.0.0.1", port), 60)
        request = chance.choice(REQUESTS)
        sock.sendall(request[: chance.randrange(1, len(request))])
        socks.append(sock)
    for _ in range(count // 4):  # These are in the middle of a reply that they do not read.
        sock = socket.create_connection(("127.0.0.1", port), 60)
        sock.sendall(b"get kept\r\n" * 20)
        socks.append(sock)
    print("ready", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
