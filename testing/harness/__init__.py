# SPDX-License-Identifier: Apache-2.0
"""Shared helpers of the system tests: servers, sockets, and the wire-dialogue language."""
