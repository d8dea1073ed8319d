# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from harness.certificates import Certificates

from operating.tls_servers import TlsServers, require_tls


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path)


@pytest.fixture
def tls(certificates):
    require_tls()
    servers = TlsServers(certificates)
    yield servers
    servers.check_and_stop()
