# SPDX-License-Identifier: Apache-2.0
"""What the server holds, hits and occupies, compared with memcached at the same -m."""
