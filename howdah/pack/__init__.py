# SPDX-License-Identifier: Apache-2.0
"""Runs as one file that can be mailed. docs/pack.md."""
