# SPDX-License-Identifier: Apache-2.0
"""Clients in the kernel that reach the server through raw frames."""
