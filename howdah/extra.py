# SPDX-License-Identifier: Apache-2.0
"""Extras of howdah that are not installed: the command that puts one where this Python finds it."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec


def install_extra(name: str) -> str:
    """By pip of this environment, which need not be the shell's. One without pip is uv's, or a distribution's."""
    if find_spec("pip") is None:
        return f"uv tool install 'howdah[guest,{name}]'"
    return f"{shlex.quote(sys.executable)} -m pip install 'howdah[{name}]'"
