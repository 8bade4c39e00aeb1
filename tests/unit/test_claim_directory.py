# SPDX-License-Identifier: Apache-2.0
"""claims.json and the directory of an experiment: what is read, what is written, and whose claims they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.claim.claims import as_declared, claims_profile, judge_claims, judged, read_claim_runs
from howdah.claim.judging import Judging
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.record.index import ProfileSource
from howdah.record.provenance import sha256_text
from tests.claim_factory import Row, make_runs, row, write_profile

UTILISATION = "value: {metric: utilisation, at: {algorithm: cubic}}"
CLAIM = f"  - {{id: it, says: so, source: p. 7, {UTILISATION}, expect: {{at_least: 50 %}}}}\n"


def _rows(plan: Plan) -> list[Row]:
    return [row("utilisation", None if plan.repetition == 2 else 0.6, "ratio")]


def made(directory: Path, claims: str = CLAIM, **options: Any) -> Path:
    extra = options.pop("extra", "")
    return make_runs(directory, write_profile(directory, claims, extra=extra), _rows, **options)


def test_what_is_no_experiment_says_so(tmp_path: Path) -> None:
    with pytest.raises(HowdahError) as refused:
        read_claim_runs(tmp_path)
    assert str(refused.value) == f"{tmp_path}: this is not an experiment: it has no experiment.json"


def test_an_experiment_is_its_index_and_its_profile(tmp_path: Path) -> None:
    experiment = made(tmp_path, verdict=lambda plan: "pending" if plan.repetition else "pass")
    index = json.loads((experiment / "experiment.json").read_text())
    field, quick, claims = read_claim_runs(experiment)
    assert [each.name for each in field.runs] == [cell["run"] for cell in index["cells"]]
    assert [(each.algorithm, each.repetition, each.run is None) for each in field.runs] == [
        (algorithm, repetition, repetition > 0) for algorithm in ("cubic", "reno") for repetition in range(3)
    ]
    assert [each.axes["algorithm"] for each in field.runs] == ["cubic"] * 3 + ["reno"] * 3
    assert (quick, field.axes, field.controls, field.unknowns) == (False, {"algorithm": ["cubic", "reno"]}, {}, None)
    assert field.document.data["path"]["rtt"] == "40 ms"
    assert [each.id for each in claims] == ["it"]
    # Files of older versions have less.
    for cell in index["cells"]:
        for name in ("axes", "algorithm", "repetition"):
            cell.pop(name)
    del index["axes"]
    (experiment / "experiment.json").write_text(json.dumps({**index, "quick": True}))
    (experiment / "profile.yaml").unlink()
    field, quick, claims = read_claim_runs(experiment)
    assert (field.runs[0].axes, field.runs[0].algorithm, field.runs[0].repetition) == ({}, "", 0)
    assert (field.document.data, field.axes, quick, claims) == ({}, {}, True, [])


def test_what_is_written_already_is_left_as_it_is(tmp_path: Path) -> None:
    experiment = made(tmp_path)
    file = experiment / "claims.json"
    found = judge_claims(experiment)
    assert found is not None
    assert json.loads(file.read_text()) == found.plain()
    before = file.stat().st_mtime_ns, file.stat().st_ino
    judge_claims(experiment)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before
    for other in ("{}", "no JSON"):
        file.write_text(other)
        judge_claims(experiment)
        assert json.loads(file.read_text()) == found.plain()
    (tmp_path / "without").mkdir()
    without = made(tmp_path / "without", "")
    for _ in range(2):
        assert judge_claims(without) is None
        assert not (without / "claims.json").exists()
        (without / "claims.json").write_text("{}")


def test_claims_of_another_profile_bring_their_controls_and_their_unknowns(tmp_path: Path) -> None:
    experiment = made(tmp_path)
    other = tmp_path / "other.yaml"
    control = "controls:\n  off: {what: switched off, set: {host.sysctls.net.ipv4.tcp_recovery: 0}}\n"
    unknown = "unknown:\n  fields:\n    buffer: {what: not said, field: path.buffer, values: [2 bdp]}\n"
    claim = CLAIM.replace("50 %}", "70 %}, control: 'off', because: it is new")
    text = (tmp_path / "made.yaml").read_text().replace(f"claims:\n{CLAIM}", f"{control}{unknown}claims:\n{claim}")
    other.write_text(text)
    found = judged(experiment, other)
    assert found is not None
    assert found.profile == ProfileSource(file=str(other), sha256=sha256_text(text))
    assert found.unknown is not None and found.unknown.fields == {"buffer": "not said"}
    (row,) = found.claims
    assert row.control is not None and (row.control.verdict, row.control.why) == (
        "unsupported",
        "its points were left out of the sweep",
    )
    assert not (experiment / "claims.json").exists(), "nothing is written"
    own = judged(experiment)
    assert own is not None and (own.profile, own.format, own.quick) == (None, 1, False)


def test_whose_claims_the_file_has(tmp_path: Path) -> None:
    experiment = made(tmp_path)
    assert claims_profile(experiment) is None, "there is no file"
    judge_claims(experiment)
    assert claims_profile(experiment) is None, "they are its own"
    other = tmp_path / "other.yaml"
    other.write_text((tmp_path / "made.yaml").read_text())
    judge_claims(experiment, other)
    assert claims_profile(experiment) == other
    other.write_text(other.read_text().replace("50 %", "40 %"))
    assert claims_profile(experiment) is None, "it has changed since"
    other.write_text("howdah: 1\nno: profile\n")
    assert claims_profile(experiment) is None
    other.unlink()
    assert claims_profile(experiment) is None
    for wrong in ("no JSON", "[]", '{"profile": "text"}', '{"profile": {}}'):
        (experiment / "claims.json").write_text(wrong)
        assert claims_profile(experiment) is None


@pytest.mark.parametrize(
    ("kind", "verdict", "declared"),
    [
        ("", "pass", "pass"),
        ("", "implemented", "pass"),
        ("", "fail", "fail"),
        (", kind: implemented", "pass", "implemented"),
        (", kind: implemented", "implemented", "implemented"),
        (", kind: implemented", "fail", "fail"),
        (", kind: implemented", "differs", "differs"),
    ],
)
def test_a_definition_that_holds_is_implemented(tmp_path: Path, kind: str, verdict: str, declared: str) -> None:
    (tmp_path / "a").mkdir()
    experiment = made(tmp_path / "a", CLAIM.replace("says: so", f"says: so{kind}"))
    _, _, (claim,) = read_claim_runs(experiment)
    assert as_declared(claim, verdict) == declared
    found = judged(experiment)
    assert found is not None
    assert found.claims[0].verdict == "fail", "a run has no value"


def test_why_runs_have_no_value(tmp_path: Path) -> None:
    than = f"{UTILISATION}, than: {{at: {{algorithm: reno}}}}, expect: more"
    links = UTILISATION.replace("utilisation", "link_utilisation") + ", expect: {at_least: 50 %}"
    text = f"{CLAIM}  - {{id: two, says: so, {than}}}\n  - {{id: three, says: so, {links}}}\n"
    field, _, claims = read_claim_runs(made(tmp_path, text))
    said = [Judging(claim, field, quick=False).missing({}) for claim in claims]
    some = "1 of 3 runs have none: there was none"
    assert said == [some, some, "3 of 3 runs have none: no link_utilisation was measured"]
    assert Judging(claims[0], field, quick=False).missing({"algorithm": "bbr"}) == said[0], (
        "value names its own algorithm"
    )
    assert Judging(claims[0], field, quick=False).missing({"path.rtt": "1 s"}) == "", "there is no run of it"
