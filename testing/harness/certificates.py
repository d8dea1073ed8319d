# SPDX-License-Identifier: Apache-2.0
"""Keys and certificates for tests of TLS, made by the program `openssl` when they are asked for."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


class Certificates:
    """An authority in a folder, and what it has signed."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self.authority = folder / f"{name}.pem"
        self._authority_key = folder / f"{name}.key"
        self._new_key(self._authority_key)
        self._run(
            *("req", "-x509", "-new", "-key", self._authority_key, "-out", self.authority),
            *("-days", "2", "-subj", f"/CN={name}"),
        )

    def sign(self, name: str, *, days: int = 2, file: str | None = None) -> tuple[Path, Path]:
        """A certificate for `name` at localhost and its key; replaces those of the same file name.

        With `days` below 0 it has expired.
        """
        file = file or name
        cert, key = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        request = self.folder / f"{file}.csr"
        self._new_key(key)
        self._run("req", "-new", "-key", key, "-out", request, "-subj", f"/CN={name}")
        extension = self.folder / "extension"
        extension.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n")
        self._run(
            *("x509", "-req", "-in", request, "-CA", self.authority, "-CAkey", self._authority_key),
            *("-CAcreateserial", "-days", str(days), "-extfile", extension, "-out", cert),
        )
        return cert, key

    def client(self, *, cert: tuple[Path, Path] | None = None, version: str = "") -> ssl.SSLContext:
        """What a client needs to check the server, with a certificate of its own or without."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if cert is not None:
            context.load_cert_chain(*map(str, cert))
        if version:
            chosen = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
            context.minimum_version = context.maximum_version = chosen
        return context

    @staticmethod
    def _new_key(path: Path) -> None:
        Certificates._run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)

    @staticmethod
    def _run(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
