# SPDX-License-Identifier: Apache-2.0
"""The fault tests' servers: still there at a test's end, and nothing left in them."""

from faults.conftest import closing, start_server, target  # noqa: F401
