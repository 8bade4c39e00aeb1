# SPDX-License-Identifier: Apache-2.0
"""rtnetlink, inet_diag and ethtool with the standard library: one module per kernel object."""
