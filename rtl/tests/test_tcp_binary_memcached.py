# SPDX-License-Identifier: Apache-2.0
"""The tests of python-binary-memcached on the core, but those of what it lacks: statistics, values of more than 1536
bytes, other sockets; and those that start several servers."""

from clients.test_python_binary_memcached import *  # noqa: F403

del test_stats, test_megabyte_values, test_compression, test_unix_socket  # noqa: F821
del test_several_servers, test_replicating_client  # noqa: F821
