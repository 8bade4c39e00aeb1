# SPDX-License-Identifier: Apache-2.0
"""Who sends and who receives; ``cross_check:`` adds one run with other traffic, paired with the run it checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.profile import load
from howdah.work.compiled import compile_plans

TEXT = """\
howdah: 1
name: checked
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: [reno, cubic]
duration: 2 s
repetitions: 2
cross_check: {traffic: iperf3, algorithm: ALGORITHM}
"""


def _write(folder: Path, algorithm: str) -> Path:
    file = folder / "checked.yaml"
    file.write_text(TEXT.replace("ALGORITHM", algorithm))
    return file


def test_one_more_run_with_the_same_path(tmp_path: Path) -> None:
    plans = compile_plans(load(_write(tmp_path, "cubic")))
    assert [plan.run for plan in plans] == ["reno-r0", "reno-r1", "cubic-r0", "cubic-r1", "cubic-iperf3-r0"]
    checked, check = plans[2], plans[4]
    assert {flow.traffic for flow in check.flows} == {flow.sink for flow in check.flows} == {"iperf3"}
    assert check.path == checked.path
    assert check.operations == checked.operations
    assert check.axes == {**checked.axes, "traffic": "iperf3"}


def test_an_algorithm_that_no_run_has(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cross_check names bbr") as caught:
        load(_write(tmp_path, "bbr"))
    assert caught.value.where is not None
    assert caught.value.where.endswith("checked.yaml:7")


@pytest.mark.parametrize(
    ("asked", "engine", "ends"),
    [
        ("{}", "uml", ("kernel", "kernel")),
        ("{}", "host", ("iperf3", "iperf3")),
        ("{source: python}", "uml", ("python", "kernel")),
        ("{source: python}", "host", ("python", "python")),
        ("{sink: iperf3}", "uml", ("iperf3", "iperf3")),
    ],
)
def test_traffic_that_is_not_named_suits_the_engine(
    tmp_path: Path, asked: str, engine: str, ends: tuple[str, str]
) -> None:
    file = tmp_path / "ends.yaml"
    file.write_text(TEXT.replace("cross_check: {traffic: iperf3, algorithm: ALGORITHM}", f"traffic: {asked}"))
    flow = compile_plans(load(file), engine=engine)[0].flows[0]
    assert (flow.traffic, flow.sink) == ends
