# SPDX-License-Identifier: Apache-2.0
"""The claims section of a report, and control runs, which stand in no table that does not name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.plan.plan import Plan
from howdah.record.result import load_experiment
from howdah.report.build import report
from howdah.report.ending import results
from howdah.report.source import TableSource
from tests.claim_factory import Row, judged, make_runs, row, write_profile

HOSTILE = "<script>alert(1)</script> & {{7*7}}"
EXTRA = "controls:\n  off: {what: switched off, set: {host.sysctls.net.ipv4.tcp_recovery: 0}}\n"
CLAIMS = f"""\
  - id: used
    says: "{HOSTILE}"
    source: "the paper's table"
    value: {{metric: utilisation, at: {{algorithm: cubic}}}}
    expect: {{above: 90 %}}
    each: path.rtt
    control: off
    because: it is switched on today
  - id: never
    says: cannot be seen
    unsupported: there is no radio here
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    def rows(plan: Plan) -> list[Row]:
        used = 0.95 if plan.axes.get("control") or plan.axes["path.rtt"] == "20 ms" else 0.5
        return [row("utilisation", used + 0.001 * plan.repetition, "ratio")]

    return make_runs(tmp_path, write_profile(tmp_path, CLAIMS, rtt="[20 ms, 40 ms]", extra=EXTRA), rows)


def test_claims_are_on_the_page(experiment: Path) -> None:
    assert judged(experiment)["used"]["verdict"] == "differs"
    text = report(experiment, prometheus="off").read_text(encoding="utf-8")
    section = text[text.index('<section id="claims"') : text.index('<section id="results"')]
    assert "<script>" not in section
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; {{7*7}}" in section
    for words in (
        "2 claims, judged over the repetitions that count: 1 differs, 1 unsupported.",
        '<span class="verdict differs">differs</span>',
        "above 90\u00a0%, at each path.rtt",
        "path.rtt = 40\u00a0ms: 50.1 (50 … 50.2) %, n\u00a0=\u00a03",
        "<strong>Control off:</strong> switched off.",
        "it is switched on today",
        "there is no radio here",
    ):
        assert words in section, words
    assert '<a href="#claims">Claims</a>' in text


def test_without_claims_there_is_no_section(experiment: Path) -> None:
    assert not (experiment / "claims.json").exists()
    text = report(experiment, prometheus="off").read_text(encoding="utf-8")
    assert 'id="claims"' not in text
    assert 'href="#claims"' not in text


def test_control_runs_are_in_no_table(experiment: Path) -> None:
    loaded = load_experiment(experiment)
    assert sum("control" in run.axes for run in loaded.runs) == 12
    points = [point for point, _ in results([loaded], TableSource()).points]
    assert points == ["path.rtt=20 ms", "path.rtt=40 ms"]
    text = report(experiment, prometheus="off").read_text(encoding="utf-8")
    table = text[text.index('<section id="results"') : text.index('<section id="checks"')]
    assert "control=off" not in table
    assert "control=off" in text[text.index('<section id="checks"') :], "their checks are shown like any other's"
