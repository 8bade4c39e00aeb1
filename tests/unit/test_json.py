# SPDX-License-Identifier: Apache-2.0
"""``--json`` of every command: one object, of a shape with a name and a version, numbers as numbers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from howdah.atlas import command as atlas_command
from howdah.build.cache import cache_root
from howdah.command import build as build_command
from howdah.command import bundle as bundle_command
from howdah.command.answer import SHAPE, answer
from howdah.command.bisect import Bisect
from howdah.command.main import build_parser
from howdah.command.search import Search
from howdah.command.shapes import SHAPES, document
from howdah.command.shapes import main as reference
from howdah.command.sign import Sign
from howdah.command.validate import Validate
from howdah.counterexample.session import SearchResult, search_file
from howdah.place import DOCS, PROJECT
from tests.experiment_factory import Scenario, make_experiment
from tests.explain.damage import pcap
from tests.explain.made import Path as Recorded
from tests.explain.made import transfer
from tests.json_shape import SEEN, check_shape
from tests.nightly_factory import sheet, usual, write_suite
from tests.unit.test_machine_set import GOOD as MACHINES
from tests.unit.test_nightly_significance import NAME
from tests.unit.test_work_reading import Bench, bench

__all__ = ["bench"]  # the fixture


# What they say of a kernel or a tool is where it lies.
SAY_WHERE = (("build",), ("doctor",), ("list", "kernels"))


def _said(text: str) -> dict[str, Any]:
    """The one object of what was printed."""
    (line,) = [line for line in text.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(line)
    return found


def _texts(value: Any) -> Iterator[str]:
    """Every text in an object, names of fields as well."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def test_every_command_prints_an_object_of_its_shape(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines, builds and searches have stand-ins: what is printed of them is the commands'.

    Every path in an object begins as the person wrote it: here they are relative.
    """
    SEEN.clear()
    own = [str(place) for place in (tmp_path, PROJECT, cache_root(), Path.home())]
    assert bench.root == tmp_path
    monkeypatch.chdir(tmp_path)
    real = make_experiment(
        bench.runs, Scenario(repetitions=2, duration_s=3.0, second_flow_s=1.0, invalid=(("reno", 1),))
    )
    said: dict[str, dict[str, Any]] = {}

    def howdah(*words: str, codes: tuple[int, ...] = (0,), runs: bool = True) -> None:
        from howdah.command.main import main

        bench.capsys.readouterr()
        code = main([*words, "--json", *(["--runs", "runs"] if runs else [])])
        out = bench.capsys.readouterr().out
        assert code in codes, (words, code, out[:500])
        found = _said(out)
        said[check_shape(found)] = found
        if words[:2] not in SAY_WHERE and words[:1] not in SAY_WHERE:
            named = [text for text in _texts(found) if any(place in text for place in own)]
            assert not named, f"howdah {' '.join(words)} names places of this machine that nobody gave: {named}"

    howdah("run", "made.yaml", "--no-report")
    howdah("rerun", "made/cubic-r0")
    howdah("claims", "made")
    howdah("claims", "latest", "--profile", "made.yaml")
    howdah("run", "validate", "--no-report", "--set", "repetitions=1")
    howdah("report", real.name, "--without-prometheus")
    howdah("compare", real.name, "--without-prometheus", "--output", "page.html")
    howdah("verify", "made", "--digests-only")
    howdah("export", real.name, "--output", "exported")
    howdah("plan", "quick", runs=False)
    howdah("plan", "no-such-profile", codes=(2,), runs=False)
    howdah("doctor", runs=False)
    for what in ("profiles", "algorithms", "kernels", "receivers", "stacks", "metrics", "runs"):
        howdah("list", what)
    howdah("score", "made", codes=(0, 5, 6))
    howdah("figure", real.name, "--list")
    howdah("figure", real.name, "--figure", "exit-strip", "--output", "strip.pdf")
    new = ("new", "mine", "--rate", "10 Mbit/s", "--rtt", "20 ms", "--output", "mine.yaml")
    howdah(*new, runs=False)
    (tmp_path / "recorded.pcap").write_bytes(pcap(transfer(Recorded(total_bytes=60_000))))
    howdah("explain", "recorded.pcap", runs=False)
    howdah("pack", "made", "--output", "made.tar.zst")
    howdah("unpack", "made.tar.zst", "unpacked", runs=False)
    if shutil.which("ssh-keygen"):
        key = tmp_path / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        howdah("sign", "made", "--key", "key")
    else:
        answer(Sign(signatures=[]))

    base = "base"
    howdah("nightly", "suite/suite.yaml", "--list")
    howdah("nightly", "suite/suite.yaml", "--accept", "--baseline", base)
    howdah("nightly", "suite/suite.yaml", "--baseline", base, codes=(0, 6))
    from howdah.nightly.sheet import Baseline

    Baseline(tmp_path / "drawn").accept(
        sheet(NAME, lambda slug, n: {**usual(slug, n), "retransmitted_packets@1": 100.0 + n})
    )
    write_suite(tmp_path / "drawn-suite", "suite: test\ncells:\n- {profile: made.yaml}\n")
    howdah("nightly", "drawn-suite/suite.yaml", "--power", "--baseline", "drawn")

    howdah("atlas", "--list")
    monkeypatch.setattr(atlas_command, "views", lambda *_a, **_n: [])
    howdah("atlas", "--no-run", "--quick", "--site", "site")
    howdah("validate", "made.yaml", codes=(0, 5, 6))
    monkeypatch.setattr(build_command, "build_all", lambda *_a: {"kernel": "debian-6.12 (/cache/kernel)"})
    howdah("build", runs=False)
    monkeypatch.setattr(bundle_command, "make_bundle", lambda *_a, **_n: "0" * 64)
    howdah("bundle", "--output", ".", runs=False)
    monkeypatch.setattr(bundle_command, "read_bundle", lambda _place: None)
    monkeypatch.setattr(bundle_command, "collect", lambda *_a: ["linux 6.12: not there"])
    howdah("bundle", "--output", "x.bundle", "--sources", "sources", codes=(4,), runs=False)
    machines = tmp_path / "machines.yaml"
    machines.write_text(MACHINES)
    howdah("machines", "inventory", "machines.yaml", "--machine-sets", "sets", runs=False)
    answer(Bisect(first_bad="0" * 40, candidates=[], steps=[], log="bisect.log"))
    answer(Search.over(search_file(SearchResult([], 1), "x", "0" * 64), directory="d", page="p", corpus=None))
    assert set(SHAPES) == SEEN

    rows = {(row["algorithm"], row["flow"], row["metric"]): row for row in said["compare"]["rows"]}
    exit_row = rows["cubic", "flow1", "exit_cwnd_packets"]
    assert exit_row["n"] == 2
    assert isinstance(exit_row["median"], float)
    assert exit_row["unit"] == "packets"
    assert sum(rows["cubic", "flow1", "exit_cause"]["counts"].values()) == 2
    assert rows["reno", None, "utilisation"]["n"] == 1
    assert [row["run"].rpartition("-")[0] for row in said["compare"]["left_out"]] == ["reno-r1"]
    assert said["report"]["rows"] == said["compare"]["rows"]
    assert {row["id"] for row in said["nightly-list"]["cells"]} >= {f"{said['nightly-list']['cells'][0]['id']}"}
    assert said["plan"]["runs"] == 2
    assert len(said["plan"]["plans"]) == 1
    assert said["error"]["error"]["what"] == "there is no profile 'no-such-profile'"


def test_every_command_with_json_has_a_shape() -> None:
    """A command that takes --json prints by ``answer``: none writes JSON in another way."""
    parser = build_parser()
    (commands,) = [action for action in parser._actions if hasattr(action, "choices") and action.dest == "command"]
    assert commands.choices is not None
    for file in sorted((PROJECT / "howdah" / "command").glob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "add_json_option(" in text and file.name != "common.py":
            assert "command.answer import answer" in text, file.name
            assert "json.dumps" not in text, file.name


def test_a_number_that_json_lacks_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    pair = {"metric": "x", "flow": "x", "agrees": True, "difference": float("inf"), "values": [float("nan"), 1.5]}
    point = {**dict.fromkeys(["run", "algorithm", "path"], "x"), "agrees": True, "problems": [], "sides": []}
    whole = {"profile": "x", "engines": [], "planted": [], "format": 1, "agrees": True, "tolerances": {}}
    answer(Validate.model_validate({"validation": "x", **whole, "points": [{**point, "measures": [pair]}]}))
    (found,) = json.loads(capsys.readouterr().out)["points"]
    assert found["measures"] == [{**pair, "difference": None, "values": [None, 1.5]}]


def test_a_table_as_text_is_no_result() -> None:
    with pytest.raises(AssertionError, match="median"):
        check_shape(
            {
                SHAPE: "compare/1",
                "report": "page.html",
                "experiments": [],
                "left_out": [],
                "rows": [dict.fromkeys(SHAPES["compare"].model_fields) | {"median": "−14 359"}],
            }
        )


def test_the_schema_promises_what_is_always_printed() -> None:
    """Whatever has a default where it is made or read from a file."""
    shapes = document()["$defs"]
    assert {"quick", "profile", "unknown", "claims"} <= set(shapes["claims/1"]["required"])
    assert "name" in shapes["run/1"]["required"]
    check = shapes["doctor/1"]["$defs"]["EngineCheck"]
    assert set(check["required"]) == set(check["properties"])
    assert check["properties"]["status"]["enum"] == ["ok", "missing", "note"]
    assert shapes["pack/1"]["properties"]["kind"]["enum"] == ["everything", "tables", "results"]


def test_the_schema_is_current_and_a_schema() -> None:
    assert reference(["--check"]) == 0, "run make references"
    written = json.loads((DOCS / "json.schema.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(document()))
    Draft202012Validator.check_schema(written)
    validator = Draft202012Validator(written)
    good = {SHAPE: "sign/1", "signatures": ["a.sig"]}
    assert not list(validator.iter_errors(good))
    assert list(validator.iter_errors({**good, "signatures": [1]}))
    assert list(validator.iter_errors({**good, SHAPE: "sign/2"}))
