# SPDX-License-Identifier: Apache-2.0
"""``howdah verify`` and ``howdah sign`` over a real recording: each way to lie about it, and what finds it out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from howdah.claim.claims import judge_claims
from howdah.command.main import main
from howdah.record.digest import remove_data, seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.run import KernelOrigin, ModuleOrigin, read_record
from howdah.work.stage import refresh
from tests.unit.recorded_run import PROFILE, make_recorded_experiment, recorded_compiler


class _Recorded:
    """An experiment of one recorded run, analysed and recorded, and the command over it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.path = root / "recorded"
        self.run = make_recorded_experiment(self.path)

    def verify(self, *more: str) -> tuple[int, str]:
        self.capsys.readouterr()
        code = main(["verify", str(self.path), "--runs", str(self.root), "--jobs", "1", *more])
        return code, self.capsys.readouterr().out

    def record_again(self) -> None:
        """What a person does who knows of the digests."""
        seal(self.run, read_record(self.run))


@pytest.fixture
def recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[_Recorded]:
    with recorded_compiler():
        yield _Recorded(tmp_path, capsys)


def test_what_is_as_it_was_recorded_is_verified_and_not_touched(recorded: _Recorded) -> None:
    def state() -> dict[str, Any]:
        files = [file for file in recorded.path.rglob("*") if file.is_file() and file.name != ".lock"]
        return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}

    before = state()
    code, said = recorded.verify()
    assert (code, said.splitlines()[-1]) == (0, "2 verified")
    assert "metrics and verdict against the tables" in said
    assert "claims.json against the runs" in said
    assert state() == before


def test_a_page_is_said_to_be_made_from_the_runs(recorded: _Recorded) -> None:
    (recorded.path / "report.html").write_text("<p>a page</p>")
    said = recorded.verify()[1]
    assert "report.html is not checked: 'howdah report' makes it again from the runs\n" in said


def _metrics(each: _Recorded) -> None:
    metrics = read_json(each.run.metrics)
    row = next(row for row in metrics["rows"] if row["metric"] == "utilisation")
    row["value"] = 0.999
    write_json(each.run.metrics, metrics)


def _cross_check(each: _Recorded) -> None:
    metrics = read_json(each.run.metrics)
    metrics["cross_checks"][0]["agree"] = not metrics["cross_checks"][0]["agree"]
    write_json(each.run.metrics, metrics)


def _verdict(each: _Recorded) -> None:
    verdict = read_json(each.run.verdict)
    verdict["verdict"] = "pass" if verdict["verdict"] != "pass" else "invalid"
    write_json(each.run.verdict, verdict)


def _check_of_the_verdict(each: _Recorded) -> None:
    verdict = read_json(each.run.verdict)
    verdict["checks"][0]["ok"] = not verdict["checks"][0]["ok"]
    write_json(each.run.verdict, verdict)


def _table(each: _Recorded) -> None:
    file = each.run.table("tcp_probe")
    table = pq.read_table(file)
    pq.write_table(table.slice(0, table.num_rows - 1).replace_schema_metadata(table.schema.metadata), file)


def _axis(each: _Recorded) -> None:
    """Another algorithm in the column by which tables of many runs are put together."""
    file = each.run.table("tcp_probe")
    table = pq.read_table(file)
    place = table.column_names.index("algorithm")
    other = pa.array(["bbr"] * table.num_rows).dictionary_encode().cast(table.schema.field("algorithm").type)
    pq.write_table(table.set_column(place, "algorithm", other).replace_schema_metadata(table.schema.metadata), file)


def _table_gone(each: _Recorded) -> None:
    each.run.table("qdisc").unlink()


def _raw(each: _Recorded) -> None:
    file = each.run.raw / "tcp_info.bin"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _plan(each: _Recorded) -> None:
    plan = read_json(each.run.plan)
    plan["path"]["rtt_us"] += 1
    write_json(each.run.plan, plan)


_LIES: dict[str, tuple[Callable[[_Recorded], None], str]] = {
    "a measure": (_metrics, "metrics.json: utilisation: 0.999 against"),
    "a cross-check": (_cross_check, "cross-checks are not what the tables give"),
    "the verdict": (_verdict, "verdict.json: verdict: "),
    "a check": (_check_of_the_verdict, "verdict.json: check '"),
    "a table": (_table, "tables/tcp_probe.parquet: not what raw/ gives"),
    "an axis": (_axis, "tables/tcp_probe.parquet: not what raw/ gives"),
    "a table that is gone": (_table_gone, "tables/qdisc.parquet: raw/ gives this table"),
    "a raw record": (_raw, "tables/tcp_info.parquet: not what raw/ gives"),
    "the plan": (_plan, "plan.json: it is not the plan that run.json names"),
}


@pytest.mark.parametrize("lie", _LIES)
def test_a_lie_is_told_by_its_digest_and_by_computing_though_its_digest_was_changed(
    recorded: _Recorded, lie: str
) -> None:
    change, found = _LIES[lie]
    change(recorded)
    code, said = recorded.verify("--digests-only")
    assert (code, "differs" in said) == (6, True)
    recorded.record_again()
    code, said = recorded.verify()
    assert code == 6
    assert found in said


def test_the_value_that_is_said_and_the_one_that_comes_out_are_shown(recorded: _Recorded) -> None:
    true = next(row["value"] for row in read_json(recorded.run.metrics)["rows"] if row["metric"] == "utilisation")
    _metrics(recorded)
    code, said = recorded.verify("--json")
    findings = [each for report in json.loads(said)["reports"] for each in report["findings"]]
    assert code == 6
    what = f"utilisation: 0.999 against {true!r}"
    assert {"file": "metrics.json", "what": what, "said": 0.999, "found": true} in findings


def test_lies_beside_the_runs(recorded: _Recorded) -> None:
    index = read_json(recorded.path / "experiment.json")
    index["cells"][0]["verdict"] = "beyond doubt"
    write_json(recorded.path / "experiment.json", index)
    code, said = recorded.verify()
    assert (code, "verdict of recorded is 'beyond doubt'" in said) == (6, True)
    (recorded.path / "profile.yaml").write_text(PROFILE.replace("above: 1", "above: 0"))
    assert "it is not the profile that experiment.json names" in recorded.verify()[1]


def test_a_claim_that_was_written(recorded: _Recorded) -> None:
    claims = read_json(recorded.path / "claims.json")
    was = claims["claims"][0]["verdict"]
    claims["claims"][0]["verdict"] = "beyond doubt"
    write_json(recorded.path / "claims.json", claims)
    code, said = recorded.verify()
    assert (code, f"used is beyond doubt, judged again it is {was}" in said) == (6, True)


def test_a_pack_that_is_not_there_is_named_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = tmp_path / "mine.howdah.tar.zst"
    assert main(["verify", str(pack), "--runs", str(tmp_path / "runs")]) == 1
    assert f"{pack}: there is no such pack" in capsys.readouterr().err


def test_a_run_from_before_the_profile_changed_is_no_lie(recorded: _Recorded) -> None:
    """It lies beside the experiment's runs, which no longer list it: nothing says what its plan is to be."""
    index = read_json(recorded.path / "experiment.json")
    index["cells"][0]["run"] = "cubic-r0-00000000"
    write_json(recorded.path / "experiment.json", index)
    recorded.capsys.readouterr()
    code = main(["verify", str(recorded.run.path), "--runs", str(recorded.root), "--jobs", "1"])
    said = recorded.capsys.readouterr().out
    assert (code, "experiment.json does not list this run" in said) == (5, True)


def test_claims_of_another_profile_are_judged_with_it(recorded: _Recorded) -> None:
    other = recorded.root / "other.yaml"
    other.write_text(PROFILE.replace("above: 1", "above: 100000"))
    judge_claims(recorded.path, other)
    assert recorded.verify()[0] == 0
    other.unlink()
    code, said = recorded.verify()
    assert (code, "which is no longer there" in said) == (5, True)


def test_what_cannot_be_checked_is_said_and_is_not_verified(recorded: _Recorded) -> None:
    record = read_json(recorded.run.provenance)
    del record["digests"]
    write_json(recorded.run.provenance, record)
    code, said = recorded.verify()
    assert (code, said.splitlines()[-1]) == (5, "1 verified, 1 unchecked")
    assert "no digests" in said


def test_results_whose_data_were_removed(recorded: _Recorded) -> None:
    write_json(recorded.run.verdict, {**read_json(recorded.run.verdict), "verdict": "pass"})
    recorded.record_again()
    assert remove_data(recorded.run)
    _, said = recorded.verify()
    assert "cannot be recomputed: the data were removed (keep: first); digests only" in said
    assert "1 digests only" in said.splitlines()[-1], "which is not verified"
    _metrics(recorded)
    assert recorded.verify()[0] == 6


def test_data_that_are_said_to_be_gone_and_are_there(recorded: _Recorded) -> None:
    """Else a word in run.json would keep anybody from computing the results."""
    write_json(recorded.run.provenance, {**read_json(recorded.run.provenance), "data_removed": True})
    code, said = recorded.verify()
    assert (code, "it says that the data were removed, and raw/ is there" in said) == (6, True)


@pytest.mark.parametrize("what", ["kernel", "module"])
def test_another_kernel_or_module_than_the_guest_said(recorded: _Recorded, what: str) -> None:
    agent = read_json(recorded.run.raw / "agent.json")
    agent |= {"kernel_release": "6.12.1", "modules": {"tcp_mine": {"srcversion": "AAAA"}}}
    write_json(recorded.run.raw / "agent.json", agent)
    modules = {"tcp_mine": ModuleOrigin(srcversion="AAAA")}
    seal(recorded.run, read_record(recorded.run).replaced(kernel=KernelOrigin(release="6.12.1"), modules=modules))
    refresh(recorded.run, force=True)
    assert recorded.verify()[0] == 0
    changed = {"kernel": {"release": "6.99.0"}} if what == "kernel" else {"modules": {"tcp_mine": {"srcversion": "B"}}}
    write_json(recorded.run.provenance, {**read_json(recorded.run.provenance), **changed})
    code, said = recorded.verify()
    assert (code, "the guest" in said) == (6, True)


def test_results_of_another_analysis_are_said_to_be(recorded: _Recorded) -> None:
    write_json(recorded.run.provenance, {**read_json(recorded.run.provenance), "analysis_sha256": "older"})
    code, said = recorded.verify()
    assert (code, "analysed by another version" in said) == (0, True)


def test_a_run_that_cannot_be_read_does_not_hide_the_others(recorded: _Recorded) -> None:
    (recorded.path / "broken").mkdir()
    (recorded.path / "broken" / "run.json").write_text("{")
    code, said = recorded.verify()
    assert code == 6
    assert "run.json: it cannot be read" in said
    assert said.splitlines()[-1] == "2 verified, 1 differs"


# ---- signatures ----------------------------------------------------------------------------------------------------

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen (openssh-client)")


def _key(place: Path, name: str) -> tuple[Path, Path]:
    """A key, and a list of signers that allows it."""
    key = place / f"key of {name}"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key], check=True)
    public = " ".join(key.with_name(f"{key.name}.pub").read_text().split()[:2])
    signers = place / f"signers {name}"
    signers.write_text(f'{name}@example.com namespaces="howdah" {public}\n')
    return key, signers


@needs_ssh
def test_a_signature_says_whose_it_is_and_holds_what_digests_cannot(recorded: _Recorded) -> None:
    key, signers = _key(recorded.root, "alice")
    assert main(["sign", str(recorded.path), "--key", str(key)]) == 0
    code, said = recorded.verify("--allowed-signers", str(signers))
    assert (code, "alice@example.com" in said) == (0, True)
    # Another raw record, everything computed from it, and all of it recorded: nothing in the run contradicts it.
    _raw(recorded)
    recorded.record_again()
    refresh(recorded.run, force=True)
    index = read_json(recorded.path / "experiment.json")
    index["cells"][0]["verdict"] = read_json(recorded.run.verdict)["verdict"]
    write_json(recorded.path / "experiment.json", index)
    judge_claims(recorded.path)
    assert recorded.verify()[0] == 0
    code, said = recorded.verify("--allowed-signers", str(signers))
    assert code == 6
    assert "recorded/raw/tcp_info.bin was changed since it was signed" in said
    assert "recorded/run.json was changed since it was signed" in said


@needs_ssh
def test_a_signature_of_nobody_known_or_of_another_list_is_none(recorded: _Recorded) -> None:
    key, signers = _key(recorded.root, "alice")
    _, others = _key(recorded.root, "bob")
    assert recorded.verify("--signature")[0] == 6, "it is not signed"
    main(["sign", str(recorded.path), "--key", str(key)])
    code, said = recorded.verify("--signature")
    assert (code, "nothing says whose key this is" in said) == (5, True)
    assert recorded.verify("--allowed-signers", str(others))[0] == 6
    manifest = recorded.path / "manifest.sha256"
    manifest.write_text(manifest.read_text().replace("a", "b", 1))
    assert recorded.verify("--allowed-signers", str(signers))[0] == 6
    manifest.with_name("manifest.sha256.sig").unlink()
    assert "its signature is not" in recorded.verify("--allowed-signers", str(signers))[1]


@needs_ssh
def test_what_others_need_to_check_a_signature_is_ssh_keygen_and_sha256sum(recorded: _Recorded) -> None:
    key, signers = _key(recorded.root, "alice")
    main(["sign", str(recorded.path), "--key", str(key)])
    command = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", "alice@example.com", "-n", "howdah"]
    with (recorded.path / "manifest.sha256").open("rb") as text:
        subprocess.run([*command, "-s", str(recorded.path / "manifest.sha256.sig")], stdin=text, check=True)
    subprocess.run(["sha256sum", "--quiet", "-c", "manifest.sha256"], cwd=recorded.path, check=True)


@needs_ssh
def test_what_was_changed_is_not_signed(recorded: _Recorded) -> None:
    key, _ = _key(recorded.root, "alice")
    _metrics(recorded)
    assert main(["sign", str(recorded.path), "--key", str(key)]) == 6
    assert not (recorded.path / "manifest.sha256.sig").exists()


@needs_ssh
def test_a_run_can_be_signed_by_itself(recorded: _Recorded) -> None:
    key, signers = _key(recorded.root, "alice")
    assert main(["sign", str(recorded.run.path), "--key", str(key)]) == 0
    assert main(["verify", str(recorded.run.path), "--allowed-signers", str(signers), "--digests-only"]) == 0
    assert recorded.verify()[0] == 0, "the signature is not itself a file that was added"


@pytest.mark.skipif(shutil.which("minisign") is None, reason="needs minisign")
def test_a_signature_by_minisign(recorded: _Recorded) -> None:
    secret, public = recorded.root / "secret", recorded.root / "public"
    subprocess.run(["minisign", "-G", "-W", "-s", secret, "-p", public], check=True, capture_output=True)
    assert main(["sign", str(recorded.path), "--key", str(secret)]) == 0
    assert recorded.verify("--public-key", str(public))[0] == 0
    assert recorded.verify("--signature")[0] == 6, "it cannot be checked without the key"
    _metrics(recorded)
    assert recorded.verify("--public-key", str(public), "--digests-only")[0] == 6


def test_a_key_that_is_not_there_is_an_error(recorded: _Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", str(recorded.path), "--key", str(recorded.root / "none")]) == 1
    assert "there is no such key" in capsys.readouterr().err


def test_both_are_runs_by_name(recorded: _Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "recorded", "--runs", str(recorded.root), "--digests-only"]) == 0
    assert RunDirectory(recorded.run.path).name in capsys.readouterr().out


@pytest.mark.parametrize("content", ['"finished"', '{"status": "finished", "digests": ["plan.json"]}'])
def test_a_record_that_is_something_else_is_refused_in_words(recorded: _Recorded, content: str) -> None:
    recorded.run.provenance.write_text(content)
    path, run = str(recorded.path), str(recorded.run.path)
    for words in (
        ["rerun", run],
        ["sign", path, "--key", str(recorded.root / "key")],
        ["pack", path, "--output", str(recorded.root / "packed")],
    ):
        assert main([*words, "--runs", str(recorded.root)]) == 1, words
        assert str(recorded.run.provenance) in recorded.capsys.readouterr().err
    code, said = recorded.verify()
    assert code == 6
    assert "run.json: it cannot be read: " in said


@pytest.mark.parametrize("name", ["plan.json", "share/plan.json"])
@pytest.mark.parametrize("what", ["no text", "a directory"])
def test_a_plan_that_cannot_be_read_is_a_finding(recorded: _Recorded, name: str, what: str) -> None:
    file = recorded.run.path / name
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    if what == "a directory":
        file.mkdir()
    else:
        file.write_bytes(b"\xec\xfe")
    code, said = recorded.verify()
    assert code == 6
    assert "plan.json: it or the guest's copy of it cannot be read: " in said


def test_a_raw_record_out_of_range_is_a_finding(recorded: _Recorded) -> None:
    agent = recorded.run.raw / "agent.json"
    agent.write_text(json.dumps({**json.loads(agent.read_text()), "epoch_monotonic_ns": 10**30}))
    code, said = recorded.verify()
    assert code == 6
    assert "the results cannot be computed from it: Python int too large" in said
