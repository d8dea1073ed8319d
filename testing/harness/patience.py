# SPDX-License-Identifier: Apache-2.0
"""How long a test waits for what must come. Only a failing test waits so long: no machine is too slow for it."""

PATIENCE_S = 300.0
