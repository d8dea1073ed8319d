# SPDX-License-Identifier: Apache-2.0
"""The NIC cache: clients reach the server through its XDP program."""
