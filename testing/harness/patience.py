# SPDX-License-Identifier: Apache-2.0
"""How long a test waits for what must come. Only a failing test waits so long: no machine is too slow for it."""

import time
from collections.abc import Callable

PATIENCE_S = 300.0


def until_it_holds(step: Callable[[], bool]) -> bool:
    """Repeats a step that is right only if a machine is fast enough, as a change of an item that lives for a second."""
    deadline = time.monotonic() + PATIENCE_S
    while not step():
        if time.monotonic() > deadline:
            return False
    return True
