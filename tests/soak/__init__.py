# SPDX-License-Identifier: Apache-2.0
"""Mixed load for long, with faults injected at random by a seed, and what must hold all along."""
