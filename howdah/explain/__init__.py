# SPDX-License-Identifier: Apache-2.0
"""Explains a transfer that somebody recorded elsewhere: what started it up, what ended that, and what held it back."""
