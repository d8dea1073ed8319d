# SPDX-License-Identifier: Apache-2.0
"""Hostile, broken and unlucky clients, and a system that runs out of things."""
