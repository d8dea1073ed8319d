# SPDX-License-Identifier: Apache-2.0
"""nginx's memcached module in front of a server: pages come from the cache, and from elsewhere after a miss.

$NGINX or `nginx` is the program; without one the tests are skipped.
"""

import gzip
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from harness.patience import PATIENCE_S
from harness.servers import free_port

from clients.support import dialogue, spec

CONFIG = """\
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
{user}
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream cache {{ server {server}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      set $memcached_key "page:$uri";
      memcached_pass cache;
      memcached_gzip_flag 2;
      gunzip {gunzip};
      default_type text/plain;
      error_page 404 = @origin;
      error_page 502 504 = @away;
    }}
    location @origin {{ return 200 "made anew"; }}
    location @away {{ return 503 "no cache"; }}
  }}
}}
"""


class Nginx:
    def __init__(self, program, server, folder):
        self.port = free_port()
        config = folder / "nginx.conf"
        folder.chmod(0o755)
        modules = subprocess.run([program, "-V"], capture_output=True, text=True).stderr
        config.write_text(
            CONFIG.format(
                folder=folder,
                server=spec(server),
                port=self.port,
                user="user root;" if os.geteuid() == 0 else "",
                gunzip="on" if "gunzip" in modules else "off",
            ).replace("gunzip off;", "")
        )
        self.process = subprocess.Popen(
            [program, "-c", config, "-p", folder], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    log = folder / "error.log"
                    pytest.fail(f"nginx did not start: {log.read_text() if log.exists() else ''}")
                time.sleep(0.02)

    def get(self, path):
        """Status and body."""
        url = f"http://127.0.0.1:{self.port}{urllib.parse.quote(path)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as failure:
            return failure.code, failure.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def nginx(server, tmp_path):
    program = shutil.which(os.environ.get("NGINX", "nginx"), path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed (Debian: nginx)")
    running = Nginx(program, server, tmp_path)
    yield running
    running.stop()


def keep(server, path, page, flags=0):
    request = b"set page:%b %d 0 %d\r\n%b\r\n" % (path.encode(), flags, len(page), page)
    assert dialogue(server, request, b"\r\n", PATIENCE_S) == b"STORED\r\n"


def test_pages_come_from_the_cache(nginx, server):
    assert nginx.get("/a") == (200, b"made anew")
    keep(server, "/a", b"from the cache")
    assert nginx.get("/a") == (200, b"from the cache")
    assert dialogue(server, b"delete page:/a\r\n", b"\r\n") == b"DELETED\r\n"
    assert nginx.get("/a") == (200, b"made anew")


@pytest.mark.parametrize("size", [0, 1, 4096, 70_000, 1_000_000])
def test_sizes(nginx, server, size):
    page = bytes(i * 7 % 251 for i in range(size))
    keep(server, "/sized", page)
    for _ in range(3):
        assert nginx.get("/sized") == (200, page)


def test_a_page_that_looks_like_a_reply(nginx, server):
    page = b"VALUE page:/x 0 3\r\nEND\r\n\r\nEND\r\n"
    keep(server, "/x", page)
    assert nginx.get("/x") == (200, page)


def test_keys_that_must_be_escaped(nginx, server):
    """The module escapes what a key cannot have."""
    keep(server, "/two%20words", b"blank")
    assert nginx.get("/two words") == (200, b"blank")


def test_a_key_that_is_too_long(nginx):
    """The server refuses it, and nginx takes that as a failure of the cache."""
    assert nginx.get("/" + "long" * 100) == (503, b"no cache")


def test_flags_say_that_a_page_is_compressed(nginx, server):
    page = b"compressible " * 100
    keep(server, "/gz", gzip.compress(page), flags=2)
    status, body = nginx.get("/gz")
    # With its module gunzip nginx unpacks it for a client that does not.
    assert (status, body if body == page else gzip.decompress(body)) == (200, page)


def test_many_requests_share_connections(nginx, server):
    keep(server, "/b", b"again")
    for _ in range(50):
        assert nginx.get("/b") == (200, b"again")
        assert nginx.get("/none") == (200, b"made anew")


def test_a_server_that_has_gone(nginx, start_server, tmp_path):
    own = start_server()
    folder = tmp_path / "own"
    folder.mkdir()
    front = Nginx(nginx.process.args[0], own, folder)
    try:
        keep(own, "/c", b"cached")
        assert front.get("/c") == (200, b"cached")
        own.stop()
        assert front.get("/c") == (503, b"no cache")
    finally:
        front.stop()
