# SPDX-License-Identifier: Apache-2.0
"""--metrics: what Prometheus reads, and the live page in a browser under load."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest
from faults.conftest import target  # noqa: F401
from faults.support import eventually, fetch, store
from harness.browser import Browser, require_chromium
from harness.exchange import ask, ask_stats, receive_all
from harness.fixtures import require_module
from harness.patience import PATIENCE_S
from harness.servers import free_port, start_server
from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as open_metrics

MODULE = "warpcached-http.so"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


class Served:
    def __init__(self, program, *options: str, host: str = "127.0.0.1") -> None:
        self.port = free_port()
        self.server = start_server(program, ("-t", "2", f"--metrics={host}:{self.port}", *options))

    def get(self, path: str, accept: str = "", method: str = "GET"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept} if accept else {}, method=method
        )
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def families(self, accept: str = OPEN_METRICS) -> dict:
        text = self.get("/metrics", accept).read().decode()
        parse = open_metrics if accept else prometheus
        return {family.name: family for family in parse.text_string_to_metric_families(text)}


@pytest.fixture
def serve(target):  # noqa: F811
    require_module("http", "libmicrohttpd")
    made: list[Served] = []

    def start(*options: str, **how) -> Served:
        made.append(Served(target, *options, **how))
        return made[-1]

    yield start
    assert [one.server.stop() for one in made] == [0] * len(made)


def value(families: dict, name: str, **labels: str) -> float:
    family = families[name]
    for sample in family.samples:
        if sample.labels == labels and sample.name in (name, f"{name}_total"):
            return sample.value
    raise KeyError((name, labels))


@pytest.mark.parametrize("accept", [OPEN_METRICS, ""])
def test_prometheus_reads_what_stats_says(serve, accept):
    served = serve()
    with served.server.connect() as sock:
        store(sock, b"key", b"value")
        for _ in range(7):
            assert fetch(sock, b"key") == b"value"
        assert fetch(sock, b"none") is None
        # A burst is measured when its replies have gone.
        counted = 'warpcache_command_duration_seconds_count{command="get"} 8\n'
        assert eventually(lambda: counted in served.get("/metrics").read().decode())
        families = served.families(accept)
        stats = ask_stats(sock)
    # The older parser keeps the suffix in a counter's name.
    commands = "memcached_commands"
    assert value(families, commands, command="get", status="hit") == 7
    assert value(families, commands, command="get", status="miss") == 1
    assert value(families, commands, command="set", status="hit") == 1
    assert families[commands].type == "counter"
    assert value(families, "memcached_up") == 1
    assert value(families, "memcached_current_items") == 1
    assert value(families, "memcached_items") == int(stats["total_items"])
    assert value(families, "memcached_current_bytes") == int(stats["bytes"])
    assert value(families, "memcached_limit_bytes") == int(stats["limit_maxbytes"])
    assert value(families, "memcached_max_connections") == int(stats["max_connections"])
    assert value(families, "memcached_current_connections") == 1
    assert value(families, "memcached_version", version=stats["version"]) == 1
    times = [s for s in families["warpcache_command_duration_seconds"].samples if s.labels.get("command") == "get"]
    counts = [s.value for s in times if s.name.endswith("_bucket")]
    assert counts == sorted(counts) and counts[-1] == 8
    assert next(s.value for s in times if s.name.endswith("_sum")) > 0


def test_memory_by_age_and_traffic_by_port(serve):
    served = serve("-U", "0")
    with served.server.connect() as sock:
        store(sock, b"key", bytes(1000))
        steps = "warpcache_item_bytes_by_age"

        def within_10_s() -> float:
            families = served.families()
            return sum(value(families, steps, up_to=end) for end in ("1", "10"))

        bytes_of_items = float(ask_stats(sock)["bytes"])
        assert 1000 < within_10_s() <= bytes_of_items
        # Nobody asks for it any more. The server's clock is moved.
        if ask(sock, b"debugtime 100\r\n") != b"OK\r\n":
            pytest.skip("the server is built without debugtime")
        assert eventually(lambda: within_10_s() == 0)
        families = served.families()
        assert value(families, steps, up_to="600") == pytest.approx(bytes_of_items, abs=1)
        assert value(families, "warpcache_oldest_item_age_seconds") >= 100
        assert int(ask_stats(sock, "items")["items:1:age"]) >= 100
        assert fetch(sock, b"key") == bytes(1000)
        assert eventually(within_10_s)
        read = value(families, "warpcache_port_read_bytes", port="tcp")
        assert 1000 < read <= value(served.families(), "memcached_read_bytes")
        assert value(families, "warpcache_port_written_bytes", port="tcp") > 1000
        assert value(families, "warpcache_port_read_bytes", port="udp") == 0
    with served.server.connect() as sock:
        assert ask(sock, b"mn\r\n") == b"MN\r\n"


def test_only_its_paths_are_answered(serve):
    served = serve()
    reply = served.get("/", method="HEAD")
    assert reply.status == 200 and reply.read() == b""
    assert b"<title>warpcached</title>" in served.get("/").read()
    for path, method, status in (("/other", "GET", 404), ("/../etc/passwd", "GET", 404), ("/", "POST", 405), ("/metrics", "DELETE", 405)):
        with pytest.raises(urllib.error.HTTPError) as failure:
            served.get(path, method=method)
        assert failure.value.code == status, path


def test_a_client_that_stalls_holds_nobody_up(serve):
    served = serve()
    with socket.create_connection(("127.0.0.1", served.port)) as stalled:
        stalled.sendall(b"GET /metrics HT")
        assert value(served.families(), "memcached_up") == 1
        with served.server.connect() as sock:
            assert ask(sock, b"mn\r\n") == b"MN\r\n"


def test_a_client_that_takes_all_connections_shuts_nobody_out(serve):
    """It holds far more than are served at a time, and keeps each busy with a request that never ends."""
    served = serve()
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(100):
            held.append(stack.enter_context(socket.create_connection(("127.0.0.1", served.port), PATIENCE_S)))
        done = threading.Event()

        def dribble(line: bytes) -> None:
            while not done.is_set():
                for sock in held:
                    with contextlib.suppress(OSError):  # it may have been closed for another
                        sock.sendall(line)
                done.wait(0.2)

        for sock in held:
            with contextlib.suppress(OSError):
                sock.sendall(b"GET /metrics HTTP/1.1\r\n")
        thread = threading.Thread(target=dribble, args=(b"A: b\r\n",))
        thread.start()
        try:
            for _ in range(5):
                assert value(served.families(), "memcached_up") == 1
        finally:
            done.set()
            thread.join()


def test_a_reader_stays_where_another_address_takes_all_connections(serve):
    served = serve()
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), PATIENCE_S))
        for _ in range(100):
            other = stack.enter_context(
                socket.create_connection(("127.0.0.1", served.port), PATIENCE_S, ("127.0.0.2", 0))
            )
            with contextlib.suppress(ConnectionError):
                other.sendall(b"GET /metrics HT")
        assert value(served.families(), "memcached_up") == 1
        reader.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b" 200 " in receive_all(reader).split(b"\r\n")[0]


def test_with_the_filter_and_after_a_stop(serve):
    served = serve("-o", "drop_privileges")
    assert value(served.families(), "memcached_up") == 1
    assert served.server.stop() == 0
    with pytest.raises(OSError):
        served.get("/metrics")


def test_without_the_option_nothing_is_loaded(target):  # noqa: F811
    server = start_server(target)
    try:
        with server.connect() as sock:
            assert ask_stats(sock, "latency") == {"latency": "off"}
        with open(f"/proc/{server.pid}/maps") as maps:
            assert MODULE not in maps.read()
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("text", ["11212", "127.0.0.1", "127.0.0.1:0", "noadmin:127.0.0.1:9", "x:99999", ""])
def test_wrong_addresses_are_refused(target, text):  # noqa: F811
    done = subprocess.run([target.path, f"--metrics={text}"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 64 and "--metrics" in done.stderr


class Load:
    """Some gets and sets until it is stopped."""

    def __init__(self, server) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(server,))
        self._thread.start()

    def _run(self, server) -> None:
        with contextlib.suppress(ConnectionError), server.connect() as sock:  # a test may end the server
            while not self._stop.is_set():
                store(sock, b"key", bytes(100))
                for _ in range(9):
                    fetch(sock, b"key")
                ask(sock, b"mg none v\r\n" * 30 + b"mn\r\n", b"MN\r\n")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def page(serve):
    require_chromium()
    served = serve()
    load = Load(served.server)
    browser = Browser()
    try:
        browser.open(f"http://127.0.0.1:{served.port}/")
        assert eventually(lambda: re.search(r"\d", browser.text("#rate")))
        yield browser, served
    finally:
        browser.close()
        load.stop()


def test_the_live_page_shows_the_load(page, tmp_path):  # the pictures are for people
    browser, served = page
    assert eventually(lambda: browser.text("#hits").endswith("%"))
    # 9 of 39 gets hit.
    assert eventually(lambda: abs(float(browser.text("#hits").split()[0]) - 100 * 9 / 39) < 2)
    assert eventually(lambda: {"get", "set", "mg"} <= set(browser.value("[...document.querySelectorAll('#latency th')].map(e => e.textContent)")))
    assert "µs" in browser.text("#latency") or "ms" in browser.text("#latency")
    for chart in ("#rate-chart", "#hits-chart", "#histogram", "#batches", "#ages"):
        assert browser.value(f"document.querySelector('{chart}').children.length") > 0, chart
        assert browser.value(f"document.querySelector('{chart}').getAttribute('aria-label')") != "no data yet"
    assert "within 1 s" in browser.text("#ages-table") and "tcp" in browser.text("#ports")
    assert "of 64 MB" in browser.text("#memory") and "of 1024" in browser.text("#clients")
    assert browser.text("#state") == "live"
    # It needs nothing but this server.
    assert all(url.startswith((f"http://127.0.0.1:{served.port}/", "data:")) for url in browser.requested())
    backgrounds = []
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        backgrounds.append(browser.value("getComputedStyle(document.body).backgroundColor"))
        image = browser.screenshot()
        assert image.startswith(b"\x89PNG")
        (tmp_path / f"{scheme}.png").write_bytes(image)
    assert backgrounds[0] != backgrounds[1]


def test_the_live_page_by_keyboard_and_screen_reader(page):
    browser, served = page
    browser.press("Tab")
    assert browser.value("document.activeElement.id") == "pause"
    browser.press("Enter", "\r")
    assert browser.value("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert browser.text("#state") == "paused"
    browser.press("Enter", "\r")
    assert eventually(lambda: browser.text("#state") == "live")
    seen = []
    for _ in range(12):
        browser.press("Tab")
        seen.append(browser.value("document.activeElement.id || document.activeElement.getAttribute('aria-labelledby')"))
    assert seen[0] == "interval" and {"h-rate", "h-latency", "h-memory", "h-ages", "h-ports", "h-own"} <= set(seen)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")}
    assert ("heading", "Hit ratio of gets") in named
    assert any(role in ("image", "img") and "commands a second" in name for role, name in named)
    assert ("status", "") in named or any(role == "status" for role, _ in named)


def test_the_live_page_says_that_the_server_has_gone(page):
    browser, served = page
    served.server.process.terminate()
    served.server.wait_exit()
    assert eventually(lambda: "does not answer" in browser.text("#state"))
