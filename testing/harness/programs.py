# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/ that tests and benchmarks run beside a server."""

from __future__ import annotations

import os
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[2]


def find_program(name: str, variable: str) -> Path | None:
    """$`variable`, the one built with $WARPCACHED, or the release build's."""
    if chosen := os.environ.get(variable):
        return Path(chosen)
    places = [REPO_ROOT / "build" / "release"]
    if "WARPCACHED" in os.environ:
        places.insert(0, Path(os.environ["WARPCACHED"]).parent)
    found = (place / name for place in places)
    return next((path for path in found if os.access(path, os.X_OK)), None)


def find_replay_client() -> Path | None:
    return find_program("replay_client", "REPLAY_CLIENT")


def find_load_generator() -> Path | None:
    return find_program("warpcache-load", "WARPCACHE_LOAD")


def find_socket_floor() -> Path | None:
    return find_program("socket_floor", "SOCKET_FLOOR")
