# SPDX-License-Identifier: Apache-2.0
"""What all tests in Python share: testing/harness/fixtures.py."""

pytest_plugins = ["harness.fixtures"]
