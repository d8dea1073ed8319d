# SPDX-License-Identifier: Apache-2.0
"""What the documents show of bench/results: tables, single values and plots (bench/report)."""
