# SPDX-License-Identifier: Apache-2.0
"""One measured number of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """``target`` is what the project aims at, as text; nothing fails when it is missed. ``note`` says what was run."""

    name: str
    value: float
    unit: str
    target: str = ""
    note: str = ""
