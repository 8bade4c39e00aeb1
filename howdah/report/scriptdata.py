# SPDX-License-Identifier: Apache-2.0
"""Data of a page for its scripts."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup


def script_json(value: Any) -> Markup:
    """JSON that may stand inside a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
