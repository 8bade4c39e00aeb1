# SPDX-License-Identifier: Apache-2.0
"""Exports as programs of others read them: pandas, polars and DuckDB; a validator of qlog; xplot's grammar.

Wireshark and flent have their tests in test_export.py and test_export_flent.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import howdah
from howdah.command.main import main
from howdah.record.result import load_experiment
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.qlog_schema import EVENT, HEAD

jsonschema = pytest.importorskip("jsonschema")

Rows = list[dict[str, Any]]
COLUMNS = ("run", "algorithm", "repetition", "flow", "time_ns", "snd_una_bytes", "cwnd_packets", "ssthresh_packets")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The name of the directory has what a careless reader splits or quotes wrongly."""
    directory = tmp_path_factory.mktemp("a reader's ü, directory")
    return make_experiment(directory, Scenario(repetitions=1, duration_s=3.0, second_flow_s=1.0))


@pytest.fixture(scope="module")
def files(root: Path) -> Path:
    target = root.parent / "exported"
    for form in ("csv", "parquet", "xplot", "qlog"):
        assert main(["export", str(root), "--format", form, "--output", str(target / form)]) == 0
    return target


def _plain(rows: Rows) -> Rows:
    """Without what stands for *nothing*: an infinite ssthresh is NaN in pandas."""
    return [{name: None if row[name] != row[name] else row[name] for name in COLUMNS} for row in rows]


def _pandas(file: Path) -> Rows:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(file) if file.suffix == ".csv" else pandas.read_parquet(file)
    return frame[list(COLUMNS)].to_dict("records")  # type: ignore[no-any-return]


def _polars(file: Path) -> Rows:
    polars = pytest.importorskip("polars")
    options = {"infer_schema_length": None}
    frame = polars.read_csv(file, **options) if file.suffix == ".csv" else polars.read_parquet(file)
    return frame.select(COLUMNS).to_dicts()  # type: ignore[no-any-return]


def _duckdb(file: Path) -> Rows:
    duckdb = pytest.importorskip("duckdb")
    read = "read_csv" if file.suffix == ".csv" else "read_parquet"
    found = duckdb.execute(f"select {', '.join(COLUMNS)} from {read}(?)", [str(file)]).fetchall()
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("read", [_pandas, _polars, _duckdb])
def test_tables_have_the_same_rows_and_types_for_every_reader(
    root: Path, files: Path, read: Callable[[Path], Rows], form: str
) -> None:
    wanted = _plain(howdah.load(root).acks.to_arrow().to_pylist())
    found = _plain(read(files / form / f"tcp_probe.{form}"))
    assert len(found) > 500
    assert found == wanted
    assert all(isinstance(row["time_ns"], int) for row in found)
    assert any(row["ssthresh_packets"] is None for row in found)
    assert any(row["ssthresh_packets"] is not None for row in found)


def test_a_query_over_the_files_finds_what_the_metrics_say(root: Path, files: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    for form in ("csv", "parquet"):
        acks, metrics = (str(files / form / f"{name}.{form}") for name in ("tcp_probe", "metrics"))
        rows = duckdb.execute(
            f"""select m.run, m.value, max(a.cwnd_packets) as most
                from read_{form}(?) as m join read_{form}(?) as a on a.run = m.run and a.flow = m.flow
                where m.metric = 'exit_cwnd_packets' and m.value is not null group by m.run, m.flow, m.value""",
            [metrics, acks],
        ).fetchall()
        exits = [
            row for row in howdah.load(root).metrics.to_arrow().to_pylist() if row["metric"] == "exit_cwnd_packets"
        ]
        assert sorted(value for _, value, _ in rows) == sorted(
            row["value"] for row in exits if row["value"] is not None
        )
        assert all(value <= most for _, value, most in rows)


def _texts(file: Path) -> list[Any]:
    """The texts of a sequence (RFC 7464): each between a record separator and a line feed."""
    first, *texts = file.read_text(encoding="utf-8").split("\x1e")
    assert first == ""
    assert all(text.endswith("\n") for text in texts)
    return [json.loads(text) for text in texts]


def test_a_validator_takes_every_text_of_a_qlog(files: Path) -> None:
    found = sorted((files / "qlog").iterdir())
    assert len(found) == 4
    for file in found:
        assert file.suffix == ".sqlog"
        head, *events = _texts(file)
        jsonschema.Draft202012Validator(HEAD).validate(head)
        validator = jsonschema.Draft202012Validator(EVENT)
        for event in events:
            validator.validate(event)
        assert {event["name"] for event in events} == {
            *("recovery:metrics_updated", "recovery:congestion_state_updated")
        }


@pytest.mark.parametrize(
    "change",
    [{"time": "1"}, {"name": "recovery:other"}, {"data": {}}, {"data": {"congestion_window": 1.5}}, {"more": 1}],
)
def test_the_validator_refuses_what_is_no_event(files: Path, change: dict[str, Any]) -> None:
    event = next(each for each in _texts(next((files / "qlog").iterdir()))[1:] if "metrics" in each["name"])
    assert not jsonschema.Draft202012Validator(EVENT).is_valid(event | change)


# xplot reads commands line by line: the types of both axes, three texts with a line each, colours by their names, and
# marks at x y; "go" draws. A colour is a command, or stands behind a mark.
_NUMBER = r"-?\d+(\.\d+)?"
_COLOURS = "white|green|red|blue|yellow|purple|orange|magenta|pink"
_XPLOT = re.compile(
    rf"(?:line {_NUMBER} {_NUMBER} {_NUMBER} {_NUMBER}|(?:dot|diamond|box|x) {_NUMBER} {_NUMBER})(?: (?:{_COLOURS}))?"
    rf"|(?:{_COLOURS})"
)
_WITH_TEXT = re.compile(rf"title|xlabel|ylabel|[ablr]text {_NUMBER} {_NUMBER}(?: (?:{_COLOURS}))?")


def _wrong_lines(text: str) -> list[str]:
    lines = iter(text.splitlines())
    wrong = [] if next(lines) == "timeval double" else ["the types of the axes are not the first line"]
    rest = list(lines)
    if not rest or rest[-1] != "go" or "go" in rest[:-1]:
        wrong.append("it does not end with go")
    at = 0
    while at < len(rest) - 1:
        if _WITH_TEXT.fullmatch(rest[at]):
            at += 1  # the next line is the text
        elif not _XPLOT.fullmatch(rest[at]):
            wrong.append(rest[at])
        at += 1
    return wrong


def test_a_time_sequence_graph_has_only_what_xplot_knows(root: Path, files: Path) -> None:
    found = sorted((files / "xplot").iterdir())
    assert len(found) == 2 * len(load_experiment(root).runs)
    for file in found:
        text = file.read_text(encoding="utf-8")
        assert _wrong_lines(text) == []
        assert text.count("\nline ") > 100
        assert _wrong_lines(text.replace("\nline ", "\nstroke ", 1)) != []
        assert _wrong_lines(text.removesuffix("go\n")) != []
