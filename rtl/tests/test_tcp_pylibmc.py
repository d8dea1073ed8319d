# SPDX-License-Identifier: Apache-2.0
"""The tests of pylibmc on the core, but those of what it lacks: statistics, values of more than 1536 bytes, other
sockets; and those that start several servers."""

from clients.test_pylibmc import *  # noqa: F403

del test_get_stats, test_large_values, test_behaviours, test_unix_socket, test_udp  # noqa: F821
