# SPDX-License-Identifier: Apache-2.0
"""A long mixed load with random faults from a seed, and checks of what must always be true."""
