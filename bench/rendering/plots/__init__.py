# SPDX-License-Identifier: Apache-2.0
"""How plots are drawn. Only this package needs matplotlib."""
