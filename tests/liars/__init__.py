# SPDX-License-Identifier: Apache-2.0
"""Liars: each makes one thing untrue, and howdah must say so by name. tests/liars/README.md lists them."""
