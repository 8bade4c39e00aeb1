# SPDX-License-Identifier: Apache-2.0
"""Defaults that several packages share."""

from __future__ import annotations

DEFAULT_ENGINE = "uml"
DEFAULT_KERNEL = "debian-6.12"
KERNEL_FORM = r"(debian-|linux-source-)?([0-9]+\.[0-9]+(\+[a-z0-9-]+)?|newest)"  # +NAME: a set of patches
