# SPDX-License-Identifier: Apache-2.0
"""collectd's memcached plugin reads a server's statistics.

$COLLECTD or `collectd` is the program; without one the tests are skipped.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from clients.support import dialogue
from harness.patience import PATIENCE_S

CONFIG = """\
Hostname "here"
BaseDir "{folder}"
PIDFile "{folder}/pid"
PluginDir "{plugins}"
TypesDB "{types}"
Interval 0.2
LoadPlugin logfile
<Plugin logfile>
  LogLevel info
  File "{folder}/log"
</Plugin>
LoadPlugin csv
<Plugin csv>
  DataDir "{folder}/csv"
  StoreRates false
</Plugin>
LoadPlugin memcached
<Plugin memcached>
  <Instance "cache">
    Address "{host}"
    Port "{port}"
  </Instance>
</Plugin>
"""


@pytest.fixture
def collected(server, tmp_path):
    """The folder with a file for each value that collectd has read."""
    program = shutil.which(os.environ.get("COLLECTD", "collectd"), path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        pytest.skip("collectd is not installed (Debian: collectd-core)")
    root = Path(program).resolve().parents[1]
    plugins = root / "lib" / "collectd"
    if not (plugins / "memcached.so").exists():
        pytest.skip(f"no memcached plugin in {plugins}")
    config = tmp_path / "collectd.conf"
    types = root / "share" / "collectd" / "types.db"
    config.write_text(
        CONFIG.format(folder=tmp_path, plugins=plugins, types=types, host=server.host, port=server.port)
    )
    process = subprocess.Popen(
        [program, "-f", "-C", config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield tmp_path / "csv" / "here" / "memcached-cache"
    process.terminate()
    process.wait(PATIENCE_S)
    log = (tmp_path / "log").read_text()
    assert "error" not in log.lower(), log


def last_value(folder: Path, name: str) -> list[str]:
    """The values of the last line of a file, without its time; empty: none yet."""
    files = sorted(folder.glob(f"{name}-2*"))
    lines = files[-1].read_text().splitlines()[1:] if files else []
    return lines[-1].split(",")[1:] if lines else []


def test_what_collectd_reads(server, collected):
    request = b"".join(b"set key:%d 0 0 5\r\nvalue\r\n" % i for i in range(10)) + b"get key:1\r\nget none\r\nmn\r\n"
    assert dialogue(server, request, b"MN\r\n", PATIENCE_S).endswith(b"MN\r\n")
    end = time.monotonic() + PATIENCE_S
    wanted = {
        "memcached_items-current": lambda value: float(value[0]) == 10,
        "memcached_ops-hits": lambda value: float(value[0]) == 1,
        "memcached_ops-misses": lambda value: float(value[0]) == 1,
        "memcached_command-set": lambda value: float(value[0]) == 10,
        "memcached_connections-current": lambda value: float(value[0]) >= 1,
        "memcached_octets": lambda value: all(float(part) > 0 for part in value),
        "ps_count": lambda value: float(value[1]) >= 1,  # threads
    }
    missing = dict(wanted)
    while missing:
        missing = {
            name: check for name, check in missing.items() if not (value := last_value(collected, name)) or not check(value)
        }
        shown = {name: last_value(collected, name) for name in missing}
        assert time.monotonic() < end, (shown, sorted(path.name for path in collected.glob("*")))
        time.sleep(0.05)
