# SPDX-License-Identifier: Apache-2.0
"""Defaults that several packages share."""

from __future__ import annotations

DEFAULT_ENGINE = "uml"
DEFAULT_KERNEL = "debian-6.12"
