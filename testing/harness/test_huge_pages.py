# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import mmap

from harness.huge_pages import count, huge_pages, none_reserved

MAP_HUGETLB = 0x40000
PAGE = 2 << 20


def reserved() -> int:
    with none_reserved():
        return count("nr_hugepages")


def test_a_page_that_is_in_use_for_longer_is_not_reserved_for_good():
    before = reserved()
    with huge_pages(4):
        page = mmap.mmap(-1, PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB)
        page[0] = 1
    # The page counts until it is given back.
    with huge_pages(4):
        page.close()
    assert reserved() == before
