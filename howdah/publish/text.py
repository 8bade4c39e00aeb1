# SPDX-License-Identifier: Apache-2.0
"""The lines of Prometheus' text formats. Standard library only: the exporter writes them on other machines, too."""

from __future__ import annotations

from collections.abc import Iterable

_EXACT = 1e15  # below it every whole number is exact and is written as one


def header(name: str, kind: str, meaning: str) -> str:
    """HELP and TYPE of a family."""
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"


def series(name: str, labels: Iterable[tuple[str, str]]) -> str:
    """A metric's name with its labels, in their order."""
    inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
    return f"{name}{{{inner}}}"


def number(value: float) -> str:
    """Whole numbers without a decimal point, everything else so that it reads back equal."""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
