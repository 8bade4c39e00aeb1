# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every kind of test shares."""

from __future__ import annotations

import sys

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Skips are counted with their reasons, where the person who reads only the end sees them."""
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    reasons: dict[str, int] = {}
    for report in skipped:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[text] = reasons.get(text, 0) + 1
    terminalreporter.write_sep("-", f"{len(skipped)} skipped")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} x {reason}")


@pytest.fixture
def python() -> str:
    """The interpreter of the tests' own environment."""
    return sys.executable
