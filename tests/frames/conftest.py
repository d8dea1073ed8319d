# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness.huge_pages import none_reserved


@pytest.fixture
def no_huge_pages() -> Iterator[None]:
    """For tests that start DPDK with ports that need none."""
    with none_reserved():
        yield
