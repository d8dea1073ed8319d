# SPDX-License-Identifier: Apache-2.0
"""The tests of pymemcache on the core, but those of what it lacks: statistics, meta commands, values of more than
1536 bytes, memory limits, shutdown, other sockets."""

from clients.test_pymemcache import *  # noqa: F403

del test_stats, test_stats_reset, test_cache_memlimit, test_meta_through_raw_command, test_shutdown  # noqa: F821
del test_large_values, test_many_large_values_in_one_reply, test_compressing_serializer  # noqa: F821
del test_too_large_a_value_is_refused_and_drops_the_old_one, test_slow_reader_gets_everything  # noqa: F821
del test_delayed_flush, test_unix_socket, test_ipv6  # noqa: F821
