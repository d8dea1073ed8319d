# SPDX-License-Identifier: Apache-2.0
"""TLS: clients, certificates of both sides, versions, sessions, and what `stats` says of them."""

from __future__ import annotations

import os
import random
import signal
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import bmemcached
import pytest
from faults.support import eventually
from harness.certificates import Certificates
from harness.exchange import ask, ask_stats
from harness.fixtures import require_target
from harness.patience import PATIENCE_S
from pymemcache.client.base import Client

from operating.tls_servers import VERSIONS, errors, exchange, other_ports, tls_options, works


def server_name(sock: ssl.SSLSocket) -> str:
    return dict(part[0] for part in sock.getpeercert()["subject"])["commonName"]


@pytest.mark.parametrize("version", VERSIONS)
def test_text_clients(tls, version):
    server = tls.start()
    context = tls.certificates.client(version=version)
    with closing(Client(("localhost", server.port), tls_context=context, timeout=PATIENCE_S)) as client:
        assert client.set("key", "value", noreply=False)
        assert client.get("key") == b"value"
        many = {f"key{i}": os.urandom(i) for i in range(200)}
        assert client.set_many(many, noreply=False) == []
        assert client.get_many(many) == many
        for size in (16_383, 16_384, 16_385, 65_536, 300_000, 1_000_000):
            value = os.urandom(size)
            assert client.set("large", value, noreply=False)
            assert client.get("large") == value


def test_binary_clients(tls):
    server = tls.start()
    context = tls.certificates.client()
    client = bmemcached.Client((f"localhost:{server.port}",), tls_context=context, socket_timeout=PATIENCE_S)
    assert client.set("key", "value") is True
    assert client.get("key") == "value"
    many = {f"key{i}": "x" * i for i in range(500)}
    client.set_multi(many)
    assert client.get_multi(list(many)) == many
    client.disconnect_all()


@pytest.mark.parametrize("version", VERSIONS)
def test_pipelines_in_any_pieces(tls, version):
    """Requests cut at any place into records of TLS, and records cut at any place into segments."""
    server = tls.start("-t", "1")
    rng = random.Random(7)
    with tls.connect(server, version=version) as sock:
        for _ in range(20):
            request, reply = b"", b""
            for i in range(rng.randrange(1, 400)):
                value = rng.randbytes(rng.choice((0, 10, 1000)))
                request += b"set k%d 0 0 %d\r\n%b\r\nget k%d\r\n" % (i, len(value), value, i)
                reply += b"STORED\r\nVALUE k%d 0 %d\r\n%b\r\nEND\r\n" % (i, len(value), value)
            assert exchange(sock, cut(request, rng), len(reply)) == reply


def cut(request: bytes, rng: random.Random) -> Iterator[bytes]:
    while request:
        size = rng.choice((1, 7, 100, 5000, 20_000))
        yield request[:size]
        request = request[size:]


def test_many_clients_at_once(tls):
    server = tls.start("-t", "4")

    def work(number: int) -> None:
        for i in range(5):
            with tls.connect(server, version=VERSIONS[(number + i) % 2]) as sock:
                value = b"%d.%d" % (number, i) * 100
                request = b"set k%d 0 0 %d\r\n%b\r\n" % (number, len(value), value)
                assert ask(sock, request) == b"STORED\r\n"
                for _ in range(20):
                    reply = ask(sock, b"get k%d\r\n" % number, b"END\r\n")
                    assert reply == b"VALUE k%d 0 %d\r\n%b\r\nEND\r\n" % (number, len(value), value)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(48)))
    stats = tls.stats(server)
    assert stats["ssl_proto_errors"] == "0"
    assert int(stats["total_connections"]) >= 240


def test_long_replies(tls):
    """Dumps, which another thread writes while the client reads."""
    server = tls.start("-t", "1")
    with tls.connect(server) as sock:
        request = b"".join(b"set key%06d 0 0 1\r\nx\r\n" % i for i in range(20_000))
        assert exchange(sock, [request], 8 * 20_000) == b"STORED\r\n" * 20_000
        dump = ask(sock, b"lru_crawler metadump all\r\n", b"END\r\n")
        assert dump.count(b"key=key") == 20_000
        assert works(sock)


def test_listeners(tls):
    """notls:, btls: and mtls: before an address of -l, in both address families."""
    plain, mutual, basic, mutual6 = other_ports(4)
    addresses = f"notls:127.0.0.1:{plain},mtls:127.0.0.1:{mutual},btls:127.0.0.1:{basic},mtls:[::1]:{mutual6}"
    ca = f"ssl_ca_cert={tls.certificates.authority}"
    server = tls.start("-l", addresses, words=(ca, "ssl_verify_mode=2"))
    own = tls.certificates.sign("client")
    with tls.connect(server, cert=own) as sock:
        assert ask(sock, b"set k 0 0 3\r\nabc\r\n") == b"STORED\r\n"
        settings = ask_stats(sock, "settings")
        assert settings["inter"] == f"127.0.0.1,{addresses}"
        assert settings["ssl_verify_mode"] == "3"
        conns = ask_stats(sock, "conns")
        listening = [v for k, v in conns.items() if k.endswith(":addr") and f":{mutual}" in v]
        assert listening == [f"tcp:127.0.0.1:{mutual}"]
        name = sock.getsockname()
        assert f"tcp:{name[0]}:{name[1]}" in conns.values()
    server.port, port = plain, server.port
    with server.connect() as sock:
        assert ask(sock, b"get k\r\n", b"END\r\n") == b"VALUE k 0 3\r\nabc\r\nEND\r\n"
    server.port = port
    with tls.connect(server, basic) as sock:
        assert works(sock)
    with tls.connect(server, mutual, cert=own) as sock:
        assert works(sock)
    server.host, host = "::1", server.host
    with tls.connect(server, mutual6, cert=own) as sock:
        assert works(sock)
    server.host = host


def refused(tls, server, port=None, **how) -> bool:
    """Whether such a client is refused, at the handshake or, with TLS 1.3, after it."""
    try:
        with tls.connect(server, port, **how) as sock:
            return ask(sock, b"mn\r\n") != b"MN\r\n"
    except (ssl.SSLError, ConnectionError):
        return True


@pytest.mark.parametrize("version", VERSIONS)
def test_certificates_of_clients(tls, version, tmp_path_factory):
    ca = f"ssl_ca_cert={tls.certificates.authority}"
    server = tls.start(words=(ca, "ssl_verify_mode=2"))
    own = tls.certificates.sign("client")
    expired = tls.certificates.sign("expired", days=-1)
    foreign = Certificates(tmp_path_factory.mktemp("foreign"), "foreign").sign("client")
    with tls.connect(server, cert=own, version=version) as sock:
        before, _ = errors(sock)
        assert refused(tls, server, version=version)
        assert refused(tls, server, version=version, cert=expired)
        assert refused(tls, server, version=version, cert=foreign)
        assert eventually(lambda: errors(sock) == (before + 3, 0))
    assert not refused(tls, server, version=version, cert=own)


def test_versions(tls):
    server = tls.start(words=("ssl_min_version=3",))
    assert refused(tls, server, version="1.2")
    assert not refused(tls, server, version="1.3")
    assert tls.stats(server, "settings")["ssl_min_version"] == "tlsv1.3"


def test_ciphers(tls):
    server = tls.start(words=("ssl_ciphers=ECDHE-ECDSA-AES128-GCM-SHA256",))
    with tls.connect(server, version="1.2") as sock:
        assert sock.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"


def test_key_in_der(tls):
    der = tls.certificates.folder / "server.der"
    subprocess.run(["openssl", "pkey", "-in", tls.cert[1], "-outform", "DER", "-out", der], check=True)
    server = tls.start(words=(f"ssl_key={der}", "ssl_keyformat=2"))
    assert tls.stats(server, "settings")["ssl_keyformat"] == "2"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("words", [(), ("ssl_session_cache",)], ids=["tickets", "cache"])
def test_sessions_are_resumed(tls, version, words):
    server = tls.start(words=words)
    context = tls.certificates.client(version=version)

    def connect(session):
        return context.wrap_socket(server.connect(), server_hostname="localhost", session=session)

    with connect(None) as sock:
        assert works(sock)
        session = sock.session
        before = ask_stats(sock)
    with connect(session) as sock:
        assert works(sock)
        assert sock.session_reused
        after = ask_stats(sock)
    assert ("ssl_new_sessions" in after) == bool(words)
    if words:
        assert int(before["ssl_new_sessions"]) > 0
        assert after["ssl_new_sessions"] == before["ssl_new_sessions"]


def test_no_session_replaces_a_certificate(tls):
    """A session of a port without certificates of clients is no way into a port that asks for them."""
    (mutual,) = other_ports(1)
    ca = f"ssl_ca_cert={tls.certificates.authority}"
    server = tls.start("-l", f"mtls:127.0.0.1:{mutual}", words=(ca, "ssl_session_cache"))
    context = tls.certificates.client(version="1.2")
    with context.wrap_socket(server.connect(), server_hostname="localhost") as sock:
        assert works(sock)
        session = sock.session
    server.port, port = mutual, server.port
    with pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(server.connect(), server_hostname="localhost", session=session)
    server.port = port
    assert tls.stats(server)


def test_settings_and_counters(tls):
    server = tls.start(words=("ssl_wbuf_size=64", "ssl_kernel_tls"))
    settings = tls.stats(server, "settings")
    assert settings["ssl_enabled"] == "yes"
    assert settings["ssl_chain_cert"] == str(tls.cert[0])
    assert settings["ssl_key"] == str(tls.cert[1])
    assert settings["ssl_wbuf_size"] == "65536"
    assert settings["ssl_kernel_tls"] == "yes"
    assert (settings["ssl_verify_mode"], settings["ssl_keyformat"]) == ("0", "1")
    assert (settings["ssl_ciphers"], settings["ssl_ca_cert"]) == ("NULL", "NULL")
    names = list(tls.stats(server))
    at = names.index("ssl_handshake_errors")
    assert names[at - 1 : at + 4] == [
        "log_watchers",
        "ssl_handshake_errors",
        "ssl_proto_errors",
        "time_since_server_cert_refresh",
        "unexpected_napi_ids",
    ]


def replace(tls, name: str, **how) -> None:
    """Replaces the server's certificate and key, at once for those who read them later."""
    for new, old in zip(tls.certificates.sign(name, **how), tls.cert, strict=True):
        os.replace(new, old)


def test_refresh_certs(tls):
    server = tls.start()
    with tls.connect(server) as before:
        assert server_name(before) == "server"
        replace(tls, "new")
        with tls.connect(server) as sock:
            assert server_name(sock) == "server"
        assert ask(before, b"refresh_certs\r\n") == b"OK\r\n"
        with tls.connect(server) as sock:
            assert server_name(sock) == "new"
        assert works(before)
        assert server_name(before) == "server"
        assert int(ask_stats(before)["time_since_server_cert_refresh"]) < 60


def test_a_certificate_that_cannot_be_read(tls):
    """The certificate in force stays, and clients notice nothing."""
    server = tls.start()
    with tls.connect(server) as sock:
        tls.cert[0].rename(tls.cert[0].with_suffix(".away"))
        reply = ask(sock, b"refresh_certs\r\n")
        assert reply.startswith(b"Error loading the certificate chain: %b : error:" % bytes(tls.cert[0]))
        tls.cert[0].with_suffix(".away").rename(tls.cert[0])
        other = tls.certificates.sign("other")
        os.replace(other[1], tls.cert[1])
        assert b"Error loading the key: " in ask(sock, b"refresh_certs\r\n")
        assert works(sock)
    with tls.connect(server) as sock:
        assert server_name(sock) == "server"


def test_reload_by_signal(tls):
    server = tls.start()
    replace(tls, "new")
    os.kill(server.pid, signal.SIGHUP)

    def has_new() -> bool:
        with tls.connect(server) as sock:
            return server_name(sock) == "new"

    assert eventually(has_new)
    tls.cert[1].write_text("no key")
    os.kill(server.pid, signal.SIGHUP)
    assert eventually(lambda: "Could not reload TLS certificates on SIGHUP" in server.log())
    assert has_new()


def test_an_expired_certificate(tls):
    """Clients that check it refuse it; the log says so; a new one mends it without a restart."""
    replace(tls, "server", days=-1, file="expired")
    server = tls.start()
    assert "has expired" in server.log()
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        tls.connect(server)
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    replace(tls, "server", file="renewed")
    with unchecked.wrap_socket(server.connect()) as sock:
        assert ask(sock, b"refresh_certs\r\n") == b"OK\r\n"
    with tls.connect(server) as sock:
        assert works(sock)


def failure_of(*options: str) -> tuple[int, str]:
    command = [require_target("warpcached").path, "-u", "root", "-l", "127.0.0.1", "-p", "-1", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stderr


def test_what_stops_the_start(tls):
    cert, key = tls.cert
    other = tls.certificates.sign("other")
    cases = [
        (["-Z", "-o", f"ssl_key={key}"], "ssl_chain_cert"),
        (tls_options(("/nowhere", key)), "Error loading the certificate chain: /nowhere : error:"),
        (tls_options((cert, "/nowhere")), "Error loading the key: /nowhere : error:"),
        (tls_options((cert, other[1])), "key values mismatch"),
        (tls_options((key, key)), "Error loading the certificate chain: "),
        (tls_options(tls.cert, "ssl_ca_cert=/nowhere"), "Error loading the CA certificate: /nowhere"),
        (tls_options(tls.cert, "ssl_ciphers=none-such"), "Error setting the provided cipher(s): none-such"),
        (tls_options(tls.cert, "ssl_verify_mode=7"), "Invalid ssl_verify_mode. Use help to see valid options."),
        (["-l", "notls:127.0.0.1"], "'notls' option is valid only when SSL is enabled"),
    ]
    for options, sentence in cases:
        status, text = failure_of(*options)
        assert status == 64, text
        assert sentence in text


def test_the_key_needs_no_rights_of_the_user(tls):
    """The key is read before -u."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    tls.cert[1].chmod(0o600)
    server = tls.start("-u", "nobody")
    with tls.connect(server) as sock:
        assert works(sock)
