# SPDX-License-Identifier: Apache-2.0
"""The base of the shapes of what commands print with ``--json`` (shapes.py)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """Strict about types: a number does not pass as text."""

    model_config = ConfigDict(extra="allow", strict=True)
