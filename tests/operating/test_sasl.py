# SPDX-License-Identifier: Apache-2.0
"""Logins by SASL (-S): with a file of names and passwords, and with libsasl2's own."""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import bmemcached
import pytest
from faults.conftest import target  # noqa: F401
from faults.support import eventually
from harness.binary import HEADER
from harness.exchange import receive_exactly
from harness.patience import PATIENCE_S
from harness.servers import Server, ServerError, start_server

LIST, AUTH, STEP, GET, STAT = 0x20, 0x21, 0x22, 0x00, 0x10
OK, NOT_FOUND, AUTH_ERROR, AUTH_CONTINUE = 0x00, 0x01, 0x20, 0x21


@pytest.fixture
def start(target):  # noqa: F811
    """Starts servers with -S; ends them, with status 0, when the test ends."""
    running: list[Server] = []

    def starter(*options: str, **how) -> Server:
        running.append(start_server(target, ("-S", "-t", "2", *options), **how))
        return running[-1]

    yield starter
    for server in running:
        log = server.log()
        assert server.stop() == 0, log
        assert "Sanitizer" not in log and "runtime error" not in log


class Client:
    """A connection that speaks the binary protocol."""

    def __init__(self, server: Server) -> None:
        self.sock = server.connect()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_) -> None:
        self.sock.close()

    def receive(self) -> tuple[int, bytes, bytes]:
        """Status, key and value of a reply."""
        header = HEADER.unpack(receive_exactly(self.sock, HEADER.size))
        body = receive_exactly(self.sock, header[6])
        return header[5], body[: header[2]], body[header[2] :]

    def ask(self, opcode: int, key: bytes = b"", value: bytes = b"") -> tuple[int, bytes]:
        self.sock.sendall(
            HEADER.pack(0x80, opcode, len(key), 0, 0, 0, len(key) + len(value), 0, 0) + key + value
        )
        status, _, text = self.receive()
        return status, text

    def log_in(self, user: str, password: str, mechanism: bytes = b"PLAIN") -> int:
        return self.ask(AUTH, mechanism, f"\0{user}\0{password}".encode())[0]

    def stats(self, kind: bytes = b"") -> dict[str, str]:
        status, key, value = self.ask_stat(kind)
        values = {}
        while key:
            values[key.decode()] = value.decode()
            status, key, value = self.receive()
        assert status == OK
        return values

    def ask_stat(self, kind: bytes) -> tuple[int, bytes, bytes]:
        self.sock.sendall(HEADER.pack(0x80, STAT, len(kind), 0, 0, 0, len(kind), 0, 0) + kind)
        return self.receive()


WITH_FILE = {
    "env": {"MEMCACHED_SASL_PWDB": "{file:users}"},
    "files": {"users": "alice:secret\nbob:builder:more\n"},
}


def test_a_client_library_logs_in(start):
    server = start(**WITH_FILE)
    address = f"127.0.0.1:{server.port}"
    client = bmemcached.Client((address,), "alice", "secret", socket_timeout=PATIENCE_S)
    assert client.set("key", "value")
    assert client.get("key") == "value"
    assert client.set_multi({f"k{i}": i for i in range(100)}) == []
    client.disconnect_all()
    wrong = bmemcached.Client((address,), "alice", "wrong", socket_timeout=PATIENCE_S)
    with pytest.raises(bmemcached.exceptions.MemcachedException):
        wrong.get("key")
    wrong.disconnect_all()


def test_statistics(start):
    with Client(start(**WITH_FILE)) as client:
        assert client.log_in("alice", "wrong") == AUTH_ERROR
        assert client.log_in("bob", "builder") == OK
        values = client.stats()
        assert (values["auth_cmds"], values["auth_errors"]) == ("2", "1")
        settings = client.stats(b"settings")
        assert settings["auth_enabled_sasl"] == "yes"
        assert settings["auth_enabled_ascii"] == "no"
        assert settings["binding_protocol"] == "binary"


def test_a_login_is_the_connections_own(start):
    server = start(**WITH_FILE)
    with Client(server) as one, Client(server) as other:
        assert one.log_in("alice", "secret") == OK
        assert one.ask(GET, b"k")[0] == NOT_FOUND
        assert other.ask(GET, b"k")[0] == AUTH_ERROR


def test_pipelined_commands_after_a_login(start):
    """The login and what needs it may come in one packet."""
    with Client(start(**WITH_FILE)) as client:
        login = b"\0alice\0secret"
        get = HEADER.pack(0x80, GET, 1, 0, 0, 0, 1, 0, 0) + b"k"
        client.sock.sendall(
            HEADER.pack(0x80, AUTH, 5, 0, 0, 0, 5 + len(login), 0, 0) + b"PLAIN" + login + 3 * get
        )
        assert client.receive()[0] == OK
        assert [client.receive()[0] for _ in range(3)] == [NOT_FOUND] * 3


def test_the_file_is_read_when_it_has_changed(start, tmp_path):
    """It may even appear after the start, as memcached's."""
    users = tmp_path / "users"
    server = start(env={"MEMCACHED_SASL_PWDB": str(users)})
    assert "cannot be read" in server.log()

    def write(text: str) -> None:
        new = tmp_path / "new"
        new.write_text(text)
        new.rename(users)

    def status(user: str, password: str) -> int:
        with Client(server) as client:
            return client.log_in(user, password)

    assert status("alice", "a") == AUTH_ERROR
    write("alice:a\n")
    assert status("alice", "a") == OK
    write("alice:b\n")
    assert (status("alice", "a"), status("alice", "b")) == (AUTH_ERROR, OK)
    users.unlink()
    assert status("alice", "b") == AUTH_ERROR
    server.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: server.log().count("cannot be read") >= 3)


def test_no_word_of_a_password_reaches_the_log(start):
    server = start("-vv", **WITH_FILE)
    with Client(server) as client:
        assert client.log_in("alice", "wrong!") == AUTH_ERROR
        assert client.log_in("alice", "secret") == OK
        assert client.log_in("alice", "again!") == AUTH_ERROR
    assert "before a login" in server.log()
    for word in ("wrong!", "secret", "again!"):
        assert word not in server.log()


@pytest.fixture
def sasldb(tmp_path) -> dict[str, str]:
    """A configuration of libsasl2 with one user."""
    program = shutil.which("saslpasswd2", path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        pytest.skip("saslpasswd2 is not installed (Debian: sasl2-bin)")
    (tmp_path / "memcached.conf").write_text(
        f"mech_list: plain cram-md5\nlog_level: 5\nsasldb_path: {tmp_path}/sasldb\n"
    )
    command = [program, "-a", "memcached", "-u", "test.realm", "-c", "-p", "testuser"]
    environment = {**os.environ, "SASL_CONF_PATH": str(tmp_path)}
    subprocess.run(command, input=b"testpass", env=environment, check=True, timeout=PATIENCE_S)
    assert Path(tmp_path, "sasldb").exists()
    return {"SASL_CONF_PATH": str(tmp_path)}


def start_with_library(start, env: dict[str, str], **how) -> Server:
    try:
        server = start(env=env, **how)
    except ServerError as error:
        if "built without it" in str(error):
            pytest.skip("the server is built without libsasl2")
        raise
    if "libsasl2 is not used" in server.log():
        pytest.skip("the server is built without libsasl2")
    return server


def test_users_of_the_library(start, sasldb):
    server = start_with_library(start, sasldb)
    with Client(server) as client:
        assert sorted(client.ask(LIST)[1].split()) == [b"CRAM-MD5", b"PLAIN"]
        assert client.log_in("testuser@test.realm", "wrong") == AUTH_ERROR
        assert client.log_in("testuser@test.realm", "testpass") == OK
        assert client.ask(GET, b"k")[0] == NOT_FOUND
    with Client(server) as client:
        status, challenge = client.ask(AUTH, b"CRAM-MD5")
        assert status == AUTH_CONTINUE and challenge.startswith(b"<")
        digest = hmac.new(b"testpass", challenge, hashlib.md5).hexdigest()
        answer = f"testuser@test.realm {digest}".encode()
        assert client.ask(STEP, b"CRAM-MD5", answer) == (OK, b"Authenticated")
        assert client.ask(GET, b"k")[0] == NOT_FOUND
    with Client(server) as client:
        assert client.ask(AUTH, b"CRAM-MD5")[0] == AUTH_CONTINUE
        assert client.ask(STEP, b"CRAM-MD5", b"testuser@test.realm 0")[0] == AUTH_ERROR
        assert client.ask(STEP, b"CRAM-MD5", answer)[0] == AUTH_ERROR
        assert client.ask(GET, b"k")[0] == AUTH_ERROR


def test_users_of_both(start, sasldb):
    server = start_with_library(
        start, {**sasldb, **WITH_FILE["env"]}, files=WITH_FILE["files"]
    )
    for user, password in (("alice", "secret"), ("testuser@test.realm", "testpass")):
        with Client(server) as client:
            assert client.log_in(user, password) == OK
            assert client.ask(GET, b"k")[0] == NOT_FOUND
    with Client(server) as client:
        assert client.log_in("alice", "testpass") == AUTH_ERROR


def test_header_of_a_challenge(start):
    """The status is 0x21, and the body is what the client must answer: nothing, for PLAIN."""
    with Client(start(**WITH_FILE)) as client:
        request = HEADER.pack(0x80, AUTH, 5, 0, 0, 0, 5, 0x01020304, 0) + b"PLAIN"
        client.sock.sendall(request)
        expected = struct.pack(">BBHBBHI", 0x81, AUTH, 0, 0, 0, AUTH_CONTINUE, 0)
        assert receive_exactly(client.sock, 24) == expected + b"\1\2\3\4" + bytes(8)
