# SPDX-License-Identifier: Apache-2.0
"""No client harms another: what administrative work may take of the server."""
