# SPDX-License-Identifier: Apache-2.0
"""Records with bytes or values that are wrong: every reader gives a table, or says in words which file is damaged."""

from __future__ import annotations

import copy
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import howdah
from howdah.command.main import main
from howdah.errors import HowdahError, RecordError
from howdah.publish.openmetrics import families
from howdah.record import table
from howdah.record.connections import Connections, RowsOfConnections, write_connections
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.reading import read_plan_file
from howdah.record.result import load_run
from howdah.verify.experiment import verify_experiment
from tests.experiment_factory import Scenario, make_experiment

CASES = 200


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run with all tables, without recorded digests: as one of an early version, or made by somebody else."""
    scenario = Scenario(name="damaged", algorithms=("cubic",), repetitions=1, flows=1, duration_s=1.0, told=True)
    run = RunDirectory(next(make_experiment(tmp_path_factory.mktemp("runs"), scenario).glob("cubic*/")))
    record = read_json(run.provenance)
    write_json(run.provenance, {key: value for key, value in record.items() if key != "digests"})
    return run


def _of_the_library(run: RunDirectory, name: str) -> None:
    howdah.load(run.path.parent).table(name).to_pylist()


READERS: dict[str, Callable[[RunDirectory, str], object]] = {
    "measures": lambda run, name: table.read(run, name).to_pylist(),
    "report": lambda run, name: (found := load_run(run.path, "damaged").table(name)) and found.to_pylist(),
    "library": _of_the_library,
}


def damage(file: Path, chance: random.Random) -> None:
    """Some bytes changed, most in the footer, which is what a parser trusts; or the file cut, or with more in it."""
    content = bytearray(file.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for _ in range(chance.choice([1, 1, 2, 8])):
        first = len(content) - footer if chance.random() < 0.8 else 0
        content[chance.randrange(first, len(content))] = chance.randrange(256)
    place = chance.randrange(len(content))
    kind = chance.random()
    if kind < 0.1:
        del content[place:]
    elif kind < 0.2:
        content[place:place] = chance.randbytes(8)
    file.write_bytes(content)


@pytest.mark.parametrize("reader", READERS)
def test_a_damaged_table_is_read_or_named(reader: str, good: RunDirectory, tmp_path: Path) -> None:
    home = tmp_path / "damaged"
    shutil.copytree(good.path.parent, home)
    run = RunDirectory(home / good.name)
    names = sorted(file.stem for file in (run.path / "tables").glob("*.parquet"))
    named = 0
    for case in range(CASES):
        chance = random.Random(case)
        name = chance.choice(names)
        shutil.copyfile(good.table(name), run.table(name))
        damage(run.table(name), chance)
        try:
            READERS[reader](run, name)
        except HowdahError as error:
            named += 1
            assert name in str(error), f"case {case}, {name}"
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            pytest.fail(f"case {case}, {name}: {type(error).__name__}: {error}")
        shutil.copyfile(good.table(name), run.table(name))
    assert named > CASES / 3, "few of the files were damaged"


def test_a_flow_that_the_plan_does_not_have_is_named(good: RunDirectory, tmp_path: Path) -> None:
    run = RunDirectory(shutil.copytree(good.path, tmp_path / "run"))
    measured = read_json(run.metrics)
    number = next(number for number, row in enumerate(measured["rows"]) if row["flow"] is not None)
    measured["rows"][number]["flow"] = 7
    write_json(run.metrics, measured)
    with pytest.raises(HowdahError, match=rf"metrics\.json: rows\.{number}\.flow: the plan has no flow 7"):
        load_run(run.path, "damaged")


def test_a_flow_of_a_table_that_the_plan_does_not_have_is_named(good: RunDirectory, tmp_path: Path) -> None:
    run = RunDirectory(shutil.copytree(good.path, tmp_path / "run"))
    infos = table.read(run, "tcp_info")
    place = infos.schema.get_field_index("flow")
    strange = pa.array([7] * len(infos), infos.schema.field(place).type)
    table.write(run, "tcp_info", infos.set_column(place, "flow", strange))
    with pytest.raises(HowdahError, match="flow 7, which the plan of 'damaged' does not have"):
        families([load_run(run.path, "damaged")])


@pytest.mark.parametrize(
    ("flow", "wrong", "what"),
    [
        (7, {}, "flow: the plan has no flow 7"),
        (1, {"group": "theirs"}, "group: the plan has no group 'theirs'"),
        (1, {"group": None}, "group: the plan has no group None"),
        (1, {"metric": None}, "metric: a row is of no measure"),
    ],
)
def test_a_connection_that_the_plan_does_not_have_is_named(
    flow: int, wrong: dict[str, str | None], what: str, good: RunDirectory, tmp_path: Path
) -> None:
    """Whoever asks for the measures of connections takes their flows and groups from the plan."""
    run = RunDirectory(shutil.copytree(good.path, tmp_path / "run"))
    plan = read_json(run.plan)
    plan["flows"][0]["group"] = "web"
    write_json(run.plan, plan)
    words = {"group": "web", "metric": "completion_time_s", "unit": "s", "algorithm": None, "receiver": None}
    for number, changes in ((1, {}), (flow, wrong)):
        rows = RowsOfConnections()
        rows.add(number, 0.5, **{**words, "why": None, **changes})
        write_connections(run, Connections(rows.table()))
        found = load_run(run.path, "damaged")
        if number == 1 and not changes:
            assert found.connections().flows == [1]
    with pytest.raises(RecordError, match=re.escape(f"connections.parquet: {what}")):
        found.connections()


_NO_PAIRS: tuple[list[list[int]], ...] = ([[]], [[1]], [[1, 2, 3]])
OPEN: tuple[tuple[str, str, object], ...] = (
    *(("path", steps, wrong) for steps in ("rate_steps", "forward_loss_steps", "reverse_loss_steps")
      for wrong in _NO_PAIRS),
    ("path", "delay_variation", {"asked": "nothing"}),
    ("path", "delay_variation", {"asked": {"source": 3}}),
    ("flows", "bursts", [[1]]),
    *(("flows", asked, {"requests": 3}) for asked in ("http", "exchange")),
    ("flows", "program", {"sends": "nobody", "ports": []}),
    ("flows", "program", {"sends": "server"}),
    *(("flows", stack, {}) for stack in ("receiver_stack", "sender_stack")),
)  # fmt: skip


@pytest.mark.parametrize(("part", "field", "wrong"), OPEN)
def test_what_the_types_of_a_plan_leave_open_is_checked(
    part: str, field: str, wrong: object, good: RunDirectory, tmp_path: Path
) -> None:
    """Lists of pairs and mappings, which later stages take by place and name."""
    plan = read_json(good.plan)
    (plan["flows"][0] if part == "flows" else plan["path"])[field] = wrong
    write_json(tmp_path / "plan.json", plan)
    with pytest.raises(RecordError, match=rf"plan\.json: {part}\.(0\.)?{field}"):
        read_plan_file(tmp_path / "plan.json")


_MTU = {"op": "mtu", "arguments": {"node": "s1", "interface": "s1-eth0", "mtu_bytes": 1500}}
_PLACE = {"node": "s1", "interface": "s1-eth0", "parent": "root", "handle": "1:"}
_QUEUE = {"op": "qdisc", "arguments": {**_PLACE, "kind": "bfifo", "options": {"limit_bytes": 5}}}
_RATE = {"rate_bits_per_second": 8, "burst_bytes": 1, "cburst_bytes": 1, "quantum_bytes": 1}
_CLASS_PLACE = {"node": "s1", "interface": "s1-eth0", "parent": "1:", "classid": "1:1"}
_CLASS = {"op": "class", "arguments": {**_CLASS_PLACE, "kind": "htb", "options": _RATE}}
_START = {"at_us": 0, "op": "start_flow", "arguments": {"flow": 1}}
STEPS: tuple[tuple[dict[str, Any], dict[str, object], str], ...] = (
    (_MTU, {"op": "teleport"}, "there is no operation 'teleport'"),
    (_MTU, {"extra": 1}, "a step has arguments, op, not arguments, extra, op"),
    (_MTU, {"arguments.mtu_bytes": "1500"}, "mtu_bytes of operation 0 (mtu) is of another type"),
    (_MTU, {"arguments.mtu_bytes": True}, "mtu_bytes of operation 0 (mtu) is of another type"),
    (_MTU, {"arguments.mtu_bytes": -1}, "mtu_bytes of operation 0 (mtu) is negative"),
    (_MTU, {"arguments.node": None}, "node of operation 0 (mtu) is of another type"),
    (_MTU, {"arguments": {"node": "s1", "interface": "s1-eth0"}}, "Mtu lacks mtu_bytes"),
    (_QUEUE, {"arguments.kind": "tbf"}, "there is no kind 'tbf'"),
    (_QUEUE, {"arguments.options": []}, "a queue has a kind and options"),
    (_QUEUE, {"arguments.options": {"speed": 3}}, "Bfifo lacks limit_bytes"),
    (_QUEUE, {"arguments.options": {"limit_bytes": 0.5}}, "limit_bytes of operation 0 (qdisc) is of another type"),
    (_CLASS, {"arguments.kind": "netem"}, "netem has no classes"),
    (_CLASS, {"arguments.options": {**_RATE, "burst_bytes": -1}}, "burst_bytes of operation 0 (class) is negative"),
    (_START, {"op": "node"}, "there is no operation 'node'"),
    (_START, {"until_us": 5}, "a step has arguments, at_us, op, not"),
    (_START, {"arguments.flow": "1"}, "flow of event 0 (start_flow) is of another type"),
)


@pytest.mark.parametrize(("step", "wrong", "what"), STEPS)
def test_a_wrong_step_is_named(
    step: dict[str, Any], wrong: dict[str, object], what: str, good: RunDirectory, tmp_path: Path
) -> None:
    """Before a machine is asked to do it."""
    part = "timeline" if "at_us" in step else "operations"
    file = tmp_path / "plan.json"
    plan = read_json(good.plan) | {part: [step]}
    write_json(file, plan)
    assert read_plan_file(file)
    changed = copy.deepcopy(step)
    for place, value in wrong.items():
        head, _, name = place.rpartition(".")
        (changed[head] if head else changed)[name] = value
    write_json(file, plan | {part: [changed]})
    with pytest.raises(RecordError, match=re.escape(what)):
        read_plan_file(file)


def test_a_run_that_two_cells_have_is_named(good: RunDirectory, tmp_path: Path) -> None:
    """It would be analysed, counted and packed twice, or ten thousand times."""
    home = Path(shutil.copytree(good.path.parent, tmp_path / "damaged"))
    index = read_json(home / "experiment.json")
    write_json(home / "experiment.json", {**index, "cells": [*index["cells"], index["cells"][0]]})
    with pytest.raises(
        HowdahError, match=r"experiment\.json: cells\.1\.run: 'cubic-\S+' is already the run of cells\.0"
    ):
        howdah.load(home).metrics.to_pylist()


def _without(index: dict[str, Any], place: str) -> dict[str, Any]:
    """The index without a field: ``name``, ``profile.sha256``, ``cells.axes`` (of the first cell)."""
    changed = copy.deepcopy(index)
    *parts, last = place.split(".")
    holder = changed
    for part in parts:
        holder = holder[part][0] if part == "cells" else holder[part]
    del holder[last]
    return changed


def _places(index: dict[str, Any]) -> list[str]:
    parts = {"": index, "profile.": index["profile"], "cells.": index["cells"][0]}
    return [f"{prefix}{name}" for prefix, part in parts.items() for name in part]


def test_an_index_that_lacks_a_field_is_read_or_named(good: RunDirectory, tmp_path: Path) -> None:
    """Each field that another version may leave out, one at a time, with every command that reads it."""
    home = Path(shutil.copytree(good.path.parent, tmp_path / "runs" / "damaged"))
    (home / "profile.yaml").write_text("howdah: 1\nname: damaged\n")
    index = read_json(home / "experiment.json")
    places = _places(index)
    assert {"cells", "profile", "profile.sha256", "cells.run", "cells.axes", "cells.status"} <= set(places)
    pack = tmp_path / "damaged.howdah.tar.zst"
    commands = (
        ["pack", str(home), "--output", str(pack)],
        ["claims", str(home)],
        ["export", str(home), "--format", "csv", "--output", str(tmp_path / "csv")],
        ["list", "runs"],
        ["clean", "--unlisted"],
    )
    for place in places:
        write_json(home / "experiment.json", _without(index, place))
        for words in commands:
            pack.unlink(missing_ok=True)
            shutil.rmtree(tmp_path / "csv", ignore_errors=True)
            try:
                assert main([*words, "--runs", str(home.parent)]) in range(7)
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                pytest.fail(f"{words[0]} without {place}: {type(error).__name__}: {error}")
        assert verify_experiment(home).state, place
