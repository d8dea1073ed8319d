# SPDX-License-Identifier: Apache-2.0
"""The load generator, against both servers and against ones that misbehave."""
