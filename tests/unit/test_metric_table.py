# SPDX-License-Identifier: Apache-2.0
"""One table of metrics: it holds what the code emits and nothing else, and all that shows metrics reads it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from howdah import metric as metrics
from howdah.errors import HowdahError
from howdah.ingest.run import ingest
from howdah.measure.cpu import NAMED
from howdah.measure.reference import BEGIN, END, main, page
from howdah.measure.row import Sheet
from howdah.metric import TABLE, UNITS, known_metrics, metric_of, unit_by_suffix
from howdah.place import DOCS, PACKAGE, PROJECT
from howdah.publish.openmetrics import summary_metric
from tests.unit.recorded_run import make_recorded_run, recorded_plan
from tests.unit.test_measure_run import metrics_of

MEASURE = sorted((PACKAGE / "measure").glob("*.py"))
ROW = {"metric": "some_s", "unit": "s", "header": "some", "module": "run", "meaning": "some time"}


def _pattern(node: ast.expr) -> str | None:
    """A regular expression of the names an argument can have; None if it is neither a text nor an f-string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"[a-z0-9_]+" for part in node.values
        )
    return None


def _adds(tree: ast.AST) -> list[ast.Call]:
    """Calls of ``sheet.add`` and of the local functions ``add`` that pass on to it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            call = node.func
            of_sheet = isinstance(call, ast.Attribute) and call.attr == "add" and ast.unparse(call.value) == "sheet"
            if of_sheet or (isinstance(call, ast.Name) and call.id == "add"):
                found.append(node)
    return found


def _emitted(file: Path) -> set[str]:
    """Patterns of the names that a file gives to a sheet: in the call itself, or in the loop that feeds it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = set()
    for call in _adds(tree):
        name = call.args[1] if isinstance(call.func, ast.Attribute) else call.args[0]
        pattern = _pattern(name)
        if pattern is not None:
            found.add(pattern)
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For) or not any(
            isinstance(name, ast.Name) and name.id == "metric" for name in ast.walk(loop.target)
        ):
            continue
        assert isinstance(loop.iter, ast.Tuple), f"{file.name}:{loop.lineno} feeds metrics that cannot be listed"
        for item in loop.iter.elts:
            pattern = _pattern(item.elts[0] if isinstance(item, ast.Tuple) else item)
            assert pattern is not None, f"{file.name}:{item.lineno} names no metric"
            found.add(pattern)
    return found


def test_the_code_emits_the_metrics_of_the_table_and_no_others() -> None:
    emitted = {f"howdah.measure.{file.stem}": _emitted(file) for file in MEASURE}
    assert sum(map(len, emitted.values())) > 80
    for module, patterns in emitted.items():
        listed = [name for name, each in known_metrics().items() if module in each.modules]
        for pattern in patterns:
            assert any(re.fullmatch(pattern, name) for name in listed), f"{module}: {pattern} is not in {TABLE}"
    sizes = (PROJECT / "profiles" / "atlas" / "footprint.c").read_text(encoding="utf-8")
    told = {f"{name}_bytes" for name in re.findall(r"^size_of\((\w+),", sizes, re.MULTILINE)}
    emitted["howdah.measure.run"] |= set(told)
    for name, each in known_metrics().items():
        assert each.modules, name
        for module in each.modules:
            assert any(re.fullmatch(pattern, name) for pattern in emitted[module]), f"{module} does not emit {name}"


def test_every_function_that_papers_name_has_its_metrics() -> None:
    for name in NAMED:
        assert f"cpu_share_{name}" in known_metrics()


def test_no_unit_stands_in_the_code_that_measures() -> None:
    units = {each.unit for each in known_metrics().values()}
    for file in MEASURE:
        for call in _adds(ast.parse(file.read_text(encoding="utf-8"))):
            arguments = [*call.args[2:], *(each.value for each in call.keywords if each.arg == "unit")]
            written = [each.value for each in arguments if isinstance(each, ast.Constant) and each.value in units]
            assert not written, f"{file.name}:{call.lineno} writes the unit {written}"


def test_the_unit_at_the_end_of_a_name_is_the_unit() -> None:
    dimensions = {unit.name for unit in UNITS}
    for name, each in known_metrics().items():
        unit = unit_by_suffix(name)
        assert (unit.name if unit else None) == (each.unit if each.unit in dimensions else None), name
        if name.endswith(("_share", "_ratio", "_bdp")) or each.shown == "%":
            assert each.unit == "ratio", name
        assert (each.factor == 100) == (each.shown == "%"), name
        assert name.endswith("_rtts") == (each.unit == "round trips"), name


def test_a_row_has_the_unit_of_the_table(tmp_path: Path) -> None:
    run = make_recorded_run(tmp_path)
    ingest(run)
    rows: list[dict[str, Any]] = metrics_of(run, recorded_plan())["rows"]
    assert len(rows) > 30
    for row in rows:
        known = metric_of(row["metric"])
        assert row["unit"] == ("" if known.is_text else known.unit)


def test_a_metric_without_a_row_in_the_table_is_refused() -> None:
    with pytest.raises(HowdahError, match=r"'unheard_of_s' is not in .*measures\.yaml"):
        Sheet({}).add(None, "unheard_of_s", 1.0)


def test_only_a_metric_whose_unit_varies_takes_one() -> None:
    sheet = Sheet({})
    sheet.add(1, "exit_quantity", 2.0, unit="rounds")
    sheet.add(1, "exit_time_s", 2.0)
    assert [row.unit for row in sheet.rows] == ["rounds", "s"]
    with pytest.raises(ValueError, match="exit_time_s"):
        sheet.add(1, "exit_time_s", 2.0, unit="ms")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unti": "s"}, "unti"),
        ({"worse": "mroe"}, "mroe"),
        ({"table": "second"}, "second"),
        ({"absent": "worse"}, "worse"),
        ({"factor": "much"}, "much"),
        ({"meaning": None}, "lacks 'meaning'"),
    ],
)
def test_a_wrong_row_is_refused(change: dict[str, Any], message: str) -> None:
    row = {key: value for key, value in (ROW | change).items() if value is not None}
    with pytest.raises(HowdahError, match=message):
        metrics._metric(row)
    assert metrics._metric(dict(ROW)).name == "some_s"


def test_the_table_is_yaml_too() -> None:
    rows = YAML(typ="safe").load(TABLE.read_text(encoding="utf-8"))
    assert [metrics._metric(dict(row)) for row in rows] == list(known_metrics().values())


def test_a_row_that_is_no_json_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "measures.yaml"
    table.write_text(f"# all of them\n- {json.dumps(ROW)}\n- {{metric: other_s}}\n", encoding="utf-8")
    monkeypatch.setattr(metrics, "TABLE", table)
    with pytest.raises(HowdahError, match=r"measures\.yaml:3: this row is not JSON"):
        known_metrics.__wrapped__()


def test_prometheus_has_one_name_and_the_meaning_of_each() -> None:
    names: dict[str, str] = {}
    for name, each in known_metrics().items():
        found, _ = summary_metric(name, "us" if each.is_by_cause else each.unit)
        assert found.help.rstrip(".").lower() == each.meaning.lower()
        assert names.setdefault(found.name, name) == name
    assert not [name for name, each in known_metrics().items() if each.meaning.endswith(".") or not each.meaning]


def test_the_page_has_the_list_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, "run make references"
    text = (DOCS / "measures.md").read_text(encoding="utf-8")
    stale = tmp_path / "measures.md"
    stale.write_text(text.replace("| more | ", "| most | "), encoding="utf-8")
    assert main(["--check", str(tmp_path)]) == 1
    assert "make references" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 0
    assert stale.read_text(encoding="utf-8") == text
    assert [name for name in known_metrics() if f"`{name}`" not in text] == []
    for without in ("# no list", f"# no end\n{BEGIN}\n", f"# no beginning\n{END}\n"):
        with pytest.raises(HowdahError, match="lacks the marks"):
            page(without)


def test_the_page_defines_metrics_that_exist() -> None:
    text = (DOCS / "measures.md").read_text(encoding="utf-8").partition(BEGIN)[0]
    defined: set[str] = set()
    for table in re.findall(r"^\| (?:metric|measure) \|.*?\n\n", text, re.MULTILINE | re.DOTALL):
        for line in table.strip().splitlines()[2:]:
            defined |= set(re.findall(r"`([a-z][a-z0-9_]+)`", line.split("|")[1]))
    assert len(defined) > 60
    assert defined <= set(known_metrics())
