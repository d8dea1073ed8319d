# SPDX-License-Identifier: Apache-2.0
"""What operators have: logins, encryption, watching, restarts."""
