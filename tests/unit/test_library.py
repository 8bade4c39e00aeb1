# SPDX-License-Identifier: Apache-2.0
"""``howdah.load``: tidy tables of many runs, with axes and units, read when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import howdah
from howdah.library import gathered
from howdah.library.axis import TEXT, type_of
from howdah.record.digest import seal
from howdah.record.directory import RunDirectory, read_json
from howdah.record.run import read_record
from howdah.record.schema import TABLES
from tests.experiment_factory import Scenario, make_experiment

QUICK = Scenario(duration_s=3.0, second_flow_s=1.0, invalid=(("reno", 1),))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_experiment(tmp_path_factory.mktemp("library"), QUICK)


def test_every_row_has_its_axes(root: Path) -> None:
    e = howdah.load(root)
    assert e.axes == ["experiment", "run", "engine", "kernel", "algorithm", "receiver", "repetition"]
    acks = e.acks.to_arrow()
    assert acks.column_names[:8] == [*e.axes, "flow_name"]
    found = {tuple(row.values()) for row in e.acks.select("algorithm", "repetition", "flow_name").to_pylist()}
    assert found == {
        (algorithm, repetition, flow)
        for algorithm, repetition in (("cubic", 0), ("cubic", 1), ("reno", 0))
        for flow in ("flow1", "flow2")
    }
    assert set(acks["experiment"].to_pylist()) == {"synthetic"}
    whole = sum(
        pq.read_metadata(path / "tables" / "tcp_probe.parquet").num_rows
        for path in root.iterdir()
        if path.is_dir() and "reno-r1" not in path.name
    )
    assert acks.num_rows == len(e.acks) == whole


def test_runs_that_do_not_count_are_there_when_asked_for(root: Path) -> None:
    assert {row["run"]: row["counts"] for row in howdah.load(root).runs.to_pylist()} == {
        "cubic-r0": True,
        "cubic-r1": True,
        "reno-r0": True,
        "reno-r1": False,
    }
    assert set(howdah.load(root).metrics.to_arrow()["run"].to_pylist()) == {"cubic-r0", "cubic-r1", "reno-r0"}
    assert "reno-r1" in set(howdah.load(root, every=True).metrics.to_arrow()["run"].to_pylist())
    checks = howdah.load(root).checks.where(ok=False).to_pylist()
    assert {(row["run"], row["check"]) for row in checks} == {("reno-r1", "bottleneck rate")}


def test_metrics_are_numbers_or_words_with_units(root: Path) -> None:
    rows = howdah.load(root).metrics.where(algorithm="cubic", repetition=0).to_pylist()
    said = read_json(next(root.glob("cubic-r0-*")) / "metrics.json")["rows"]
    assert len(rows) == len(said)
    for row, source in zip(rows, said, strict=True):
        assert (row["metric"], row["flow"]) == (source["metric"], source["flow"])
        assert (row["text"] if isinstance(source["value"], str) else row["value"]) == source["value"]
    exits = howdah.load(root).exits
    assert exits.units["exit_time_s"] == "s"
    assert exits.units["exit_cwnd_packets"] == "packets"
    first = exits.where(run="cubic-r0", flow_name="flow1").to_pylist()
    assert [row["exit_cause"] for row in first] == [
        row["value"] for row in said if row["metric"] == "exit_cause" and row["flow"] == 1
    ]


def test_units_are_in_the_fields_of_the_files(root: Path) -> None:
    schema = pq.read_schema(next(root.glob("cubic-r0-*")) / "tables" / "tcp_info.parquet")
    units = {column.name: (column.metadata or {}).get(b"unit") for column in schema}
    assert units["cwnd_packets"] == b"packets"
    assert units["rtt_us"] == b"us"
    assert units["time_ns"] == b"ns"
    assert units["pacing_rate_bytes_per_second"] == b"bytes/s"
    assert units["state"] is None
    assert howdah.load(root).tcp_info.units["rtt_us"] == "us"


def test_every_table_is_an_attribute(root: Path) -> None:
    e = howdah.load(root)
    for name in TABLES:
        assert isinstance(getattr(e, name), howdah.Rows)
    assert set(e.tables) <= set(TABLES)
    with pytest.raises(howdah.HowdahError, match="no table"):
        e.table("acks")
    empty = make_experiment(
        root.parent / "empty", Scenario(without_tables=("cpu",), repetitions=1, duration_s=2.0, second_flow_s=1.0)
    )
    with pytest.raises(howdah.HowdahError, match="no run has the table 'cpu'"):
        howdah.load(empty).cpu.to_arrow()


def test_swept_fields_are_columns_of_one_type(tmp_path: Path) -> None:
    axes = ({"path.rate": 10_000_000, "queue": "4 bdp"}, {"path.rate": 20_000_000, "queue": 1})
    scenario = Scenario(algorithms=("cubic",), repetitions=1, duration_s=2.0, second_flow_s=1.0, axes=axes)
    e = howdah.load(make_experiment(tmp_path, scenario))
    assert e.axes[-2:] == ["path.rate", "queue"]
    pairs = {(row["path.rate"], row["queue"]) for row in e.acks.select("path.rate", "queue").to_pylist()}
    assert pairs == {(10_000_000, "4 bdp"), (20_000_000, "1")}
    assert set(e.metrics.where(**{"path.rate": 10_000_000}).to_arrow()["queue"].to_pylist()) == {"4 bdp"}
    assert {column.name: column.type for column in e.acks.schema}["path.rate"] == pa.int64()


def test_several_experiments_are_one_table(tmp_path: Path) -> None:
    plain = make_experiment(tmp_path, Scenario(name="plain", repetitions=1, duration_s=2.0, second_flow_s=1.0))
    swept = make_experiment(
        tmp_path,
        Scenario(
            name="swept",
            algorithms=("bbr",),
            repetitions=1,
            duration_s=2.0,
            second_flow_s=1.0,
            axes=({"path.rate": 10_000_000},),
        ),
    )
    e = howdah.load(plain, swept, next(plain.glob("cubic-*")))
    rows = e.runs.select("experiment", "algorithm", "path.rate").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("plain", "cubic", None),
        ("plain", "reno", None),
        ("swept", "bbr", 10_000_000),
    ]
    counted: dict[str, int] = {}
    for experiment in e.acks.to_arrow()["experiment"].to_pylist():
        counted[experiment] = counted.get(experiment, 0) + 1
    assert set(counted) == {"plain", "swept"}
    assert counted["plain"] == len(howdah.load(plain).acks)


def test_names_are_those_of_the_command_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert howdah.load("synthetic/cubic-r0", runs=root.parent).runs.to_arrow()["run"].to_pylist() == ["cubic-r0"]
    monkeypatch.setenv("HOWDAH_RUNS", str(root.parent))
    assert howdah.load("synthetic").paths == [root]
    with pytest.raises(howdah.HowdahError, match="no run or experiment 'nothing'"):
        howdah.load("nothing")


def test_nothing_is_read_before_it_is_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise AssertionError("results were read")

    monkeypatch.setattr(gathered, "read_changed_runs", refuse)
    e = howdah.load(root)
    _rows = (e.metrics, e.acks, e.exits, e.runs, e.qdisc)
    with pytest.raises(AssertionError, match="results were read"):
        e.metrics.to_arrow()


def test_big_tables_come_in_parts(root: Path) -> None:
    acks = howdah.load(root).acks.where(algorithm="cubic").select("time_ns", "cwnd_packets")
    assert isinstance(acks.dataset, ds.Dataset)
    parts = list(acks.batches())
    assert len(parts) > 1, "a file at a time"
    assert sum(part.num_rows for part in parts) == len(acks)


def test_what_is_asked_for_is_narrowed_before_it_is_read(root: Path) -> None:
    acks = howdah.load(root).acks
    late = acks.where(ds.field("time_ns") > 2_000_000_000, flow_name=["flow1"], algorithm="reno")
    assert 0 < len(late) < len(acks)
    assert {tuple(row.values()) for row in late.select("algorithm", "flow_name").to_pylist()} == {("reno", "flow1")}
    with pytest.raises(howdah.HowdahError, match="no column 'cwnd'"):
        acks.select("cwnd")


def test_pandas_polars_and_duckdb_take_them(root: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    pytest.importorskip("pandas")
    e = howdah.load(root)
    frame = e.acks.to_pandas()
    assert str(frame["algorithm"].dtype) == "category"
    largest = frame.groupby("algorithm", observed=True)["cwnd_packets"].max().to_dict()
    acks = e.acks
    by_duckdb = dict(duckdb.sql("SELECT algorithm, max(cwnd_packets) FROM acks GROUP BY 1").fetchall())
    by_polars = polars.DataFrame(acks).group_by("algorithm").agg(polars.col("cwnd_packets").max())
    assert by_duckdb == largest
    assert dict(by_polars.cast({"algorithm": polars.String}).iter_rows()) == largest
    assert e.acks.to_polars().height == len(frame)
    del acks


def test_polars_shares_the_memory_of_a_column(root: Path) -> None:
    polars = pytest.importorskip("polars")
    table = howdah.load(root).acks.to_arrow().combine_chunks()
    address = table["time_ns"].chunk(0).buffers()[1].address
    series = polars.from_arrow(table)["time_ns"]
    assert series.to_arrow().buffers()[1].address == address


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    root = make_experiment(tmp_path, Scenario(repetitions=1, duration_s=2.0, second_flow_s=1.0))
    for path in root.glob("*-r0-*"):
        run = RunDirectory(path)
        seal(run, read_record(run))
    assert len(howdah.load(root).acks)
    file = next(root.glob("cubic-*")) / "tables" / "tcp_probe.parquet"
    file.write_bytes(file.read_bytes() + b"\0")
    assert len(howdah.load(root).qdisc), "another table is not touched"
    with pytest.raises(howdah.HowdahError, match=r"tcp_probe\.parquet was changed"):
        howdah.load(root).acks.to_arrow()


def test_lines_that_some_readers_see_in_one_colour_have_different_dashes(tmp_path: Path) -> None:
    """Each name has dashes of its own, as in print."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    names = ("cubic", "search", "hystart-plus-plus")
    e = howdah.load(
        make_experiment(tmp_path, Scenario(algorithms=names, repetitions=1, duration_s=2.0, second_flow_s=0.5))
    )
    ax = e.plot()
    lines: list[Any] = list(ax.get_lines())
    looks = {line.get_label(): (line.get_color(), line._dash_pattern) for line in lines}
    assert set(looks) == {f"{name}, flow{number}" for name in names for number in (1, 2)}
    first = [looks[f"{name}, flow1"] for name in names]
    assert first[0][1][1] is None, "cubic is solid"
    assert len({str(dash) for _colour, dash in looks.values()}) == len(looks)
    assert len({colour for colour, _dash in first}) == len(first)
    dots = e.plot("retransmitted_packets", flow_name="flow1", x="kernel")
    assert len({line.get_marker() for line in dots.get_lines()}) == len(names)
    pyplot.close("all")


def test_points_of_a_sweep_are_told_apart(tmp_path: Path) -> None:
    matplotlib.use("agg")
    from matplotlib import pyplot

    points: tuple[dict[str, Any], ...] = ({"path.rtt": "40 ms"}, {"path.rtt": "80 ms"})
    e = howdah.load(make_experiment(tmp_path, Scenario(repetitions=1, duration_s=2.0, axes=points, flows=1)))
    names = {line.get_label(): line.get_color() for line in e.plot(flow_name="flow1").get_lines()}
    assert set(names) == {"cubic, 40 ms", "cubic, 80 ms", "reno, 40 ms", "reno, 80 ms"}
    assert len(set(names.values())) == 4
    dots = e.plot("retransmitted_packets", flow_name="flow1", x="path.rtt")
    assert {line.get_label() for line in dots.get_lines()} == {"cubic", "reno"}
    one = e.plot(flow_name="flow1", **{"path.rtt": "40 ms"})
    assert {line.get_label() for line in one.get_lines()} == {"cubic", "reno"}
    pyplot.close("all")


def test_plots(root: Path) -> None:
    matplotlib.use("agg")
    from matplotlib import pyplot

    e = howdah.load(root)
    ax = e.plot(flow_name="flow1", repetition=0)
    assert {line.get_label() for line in ax.get_lines()} == {"cubic", "reno"}
    assert ax.get_ylabel() == "cwnd (packets)"
    both = e.plot("srtt_us", until_s=2.0)
    assert len(both.get_lines()) == 6
    assert max(np.asarray(line.get_xdata()).max() for line in both.get_lines()) <= 2.0
    dots = e.plot("retransmitted_packets", flow_name="flow1")
    values = sorted(value for line in dots.get_lines() for value in np.asarray(line.get_ydata()).tolist())
    assert values == sorted(
        row["value"] for row in e.metrics.where(metric="retransmitted_packets", flow_name="flow1").to_pylist()
    )
    with pytest.raises(howdah.HowdahError, match="nothing called 'cwnd'"):
        e.plot("cwnd")
    pyplot.close("all")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None], TEXT),
        ([1, 2, None], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([True, False], pa.bool_()),
        ([1, "4 bdp"], pa.string()),
        ([True, 1], pa.string()),
        ([None], TEXT),
    ],
)
def test_one_type_for_all_values(values: list[Any], kind: pa.DataType) -> None:
    assert type_of(values) == kind


def test_importing_howdah_imports_nothing_else() -> None:
    code = (
        "import howdah, sys; print([name for name in sys.modules if name.startswith('howdah.') or name == 'pyarrow'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
