# SPDX-License-Identifier: Apache-2.0
"""Real clients against the server."""
