# SPDX-License-Identifier: Apache-2.0
"""Each number of what a report says in words is that of the metrics.json files, read here in another way."""

from __future__ import annotations

import json
import re
import statistics
from collections import defaultdict
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import pytest

from howdah.record.result import Experiment
from tests.experiment_factory import Scenario
from tests.unit.test_report_found import EXIT, LOST, made, words

NINETY = "time_to_90_percent_s"
CAUSES = {"cubic": ("ack-train", "ACK train"), "reno": ("loss", "loss")}
NUMBER = r"[\d.\u202f]+"
# Of a clause: ``cubic left slow start at 1.15 BDP (1.12 … 1.18) by ACK train and retransmitted 907 packets``.
AT = re.compile(
    rf"at (?P<value>{NUMBER}) BDP(?: \((?P<low>{NUMBER}) … (?P<high>{NUMBER})\))? by (?P<cause>ACK train|loss)\b"
)
GONE = re.compile(
    rf"(?:retransmitted|, and) (?P<value>{NUMBER})(?: packets)?(?: \((?P<low>{NUMBER}) … (?P<high>{NUMBER})\))?"
)
AFTER = re.compile(rf"capacity after (?P<value>{NUMBER}) s(?: \((?P<low>{NUMBER}) … (?P<high>{NUMBER})\))?")

Values = dict[str, list[float]]  # of each measure, over the repetitions that count


def numbers(row: dict[str, Any]) -> object:
    """Another value for each algorithm, kernel, receiver and repetition."""
    second, newer = row["algorithm"] == "reno", row["kernel"] == "7.0"
    other, repetition = row["axes"].get("receiver") == "freebsd", row["repetition"]
    share = 1 + 1.07 * second + 0.31 * newer + 0.53 * other
    return {
        EXIT: round(0.317 * share + 0.071 * repetition**2, 4),
        LOST: round(104 * share) + 7 * repetition**2,
        NINETY: 1.234 * share + 0.1 * repetition,
        "exit_cause": CAUSES[row["algorithm"]][0],
    }.get(row["metric"])


def measured(experiments: list[Experiment], who: Callable[[dict[str, Any]], str]) -> dict[str, Values]:
    """From the files of the runs that pass or fail: values of the first flow by whatever ``who`` makes of a row."""
    found: dict[str, Values] = defaultdict(lambda: defaultdict(list))
    for experiment in experiments:
        for file in sorted(experiment.path.glob("*/metrics.json")):
            if json.loads(file.with_name("verdict.json").read_text())["verdict"] not in ("pass", "fail"):
                continue
            for row in json.loads(file.read_text())["rows"]:
                if row["flow"] == 1 and row["metric"] in (EXIT, LOST, NINETY):
                    found[who(row)][row["metric"]].append(row["value"])
    return found


def spread(values: list[float]) -> tuple[float, float] | None:
    """Least and largest of fewer than six; of more the narrowest pair of ranks that has the median in 95 %."""
    ordered, count = sorted(values), len(values)
    if ordered[0] == ordered[-1]:
        return None
    rank = 0
    if count >= 6:
        while 2 * sum(comb(count, each) for each in range(rank + 2)) / 2**count <= 0.05:
            rank += 1
    return ordered[rank], ordered[-1 - rank]


def plain(text: str | None) -> float | None:
    return None if text is None else float(text.replace("\u202f", ""))


def check(said: re.Match[str] | None, values: list[float]) -> None:
    """Three digits are said."""
    assert said is not None
    assert plain(said["value"]) == pytest.approx(statistics.median(values), rel=0.005)
    ends = spread(values)
    assert (said["low"] is None) == (ends is None)
    if ends is not None:
        assert (plain(said["low"]), plain(said["high"])) == pytest.approx(ends, rel=0.005)


def clauses(sentence: str, names: list[str]) -> dict[str, str]:
    parts = [f"{part}." for part in sentence.removesuffix(".").split("; ")]
    found = {
        next(name for name in names if re.match(rf"{re.escape(name)} (left|at|did)", part)): part for part in parts
    }
    assert len(found) == len(parts) == len(names)
    return found


def by_algorithm(row: dict[str, Any]) -> str:
    return str(row["algorithm"])


def by_kernel(row: dict[str, Any]) -> str:
    return f"{row['algorithm']} · {row['kernel']}"


@pytest.mark.parametrize(
    ("scenarios", "who", "left_out"),
    [
        pytest.param([Scenario(repetitions=1)], by_algorithm, None, id="one repetition"),
        pytest.param([Scenario(repetitions=5)], by_algorithm, None, id="few repetitions"),
        pytest.param([Scenario(repetitions=9)], by_algorithm, None, id="many repetitions"),
        pytest.param(
            [
                Scenario(name=f"on-{kernel}", kernel=kernel, algorithms=algorithms, repetitions=3)
                for kernel, algorithms in (("6.12", ("cubic", "reno")), ("7.0", ("cubic",)))
            ],
            by_kernel,
            None,
            id="two kernels",
        ),
        pytest.param(
            [Scenario(repetitions=4, invalid=(("cubic", 0), ("reno", 3)), failed=(("reno", 0),))],
            by_algorithm,
            "3 of 8 runs do not count: 2 invalid and 1 failed",
            id="invalid runs",
        ),
    ],
)
def test_numbers_of_variants_side_by_side(
    tmp_path: Path, scenarios: list[Scenario], who: Callable[[dict[str, Any]], str], left_out: str | None
) -> None:
    for scenario in scenarios:
        scenario.flows = 1
    experiments = [made(tmp_path / scenario.name, scenario, numbers) for scenario in scenarios]
    expected = measured(experiments, who)
    sentences = words(*experiments)
    for name, clause in clauses(sentences[0], list(expected)).items():
        at = AT.search(clause)
        check(at, expected[name][EXIT])
        assert at is not None
        assert at["cause"] == CAUSES[name.partition(" ")[0]][1]
        check(GONE.search(clause), expected[name][LOST])
    assert any(sentence.startswith(left_out or "nothing") for sentence in sentences) == (left_out is not None)


def test_numbers_of_one_algorithm_whose_second_flow_says_nothing(tmp_path: Path) -> None:
    experiment = made(tmp_path, Scenario(algorithms=("reno",), repetitions=3), numbers)
    text = words(experiment)[0]
    expected = measured([experiment], by_algorithm)["reno"]
    for pattern, metric in ((AT, EXIT), (GONE, LOST), (AFTER, NINETY)):
        check(pattern.search(text), expected[metric])


def test_ratios_over_receivers(tmp_path: Path) -> None:
    """A sweep: reno over cubic at each receiver, by pairs of repetitions; least and largest are named with theirs."""
    axes = tuple({"receiver": name} for name in ("linux", "freebsd"))
    experiment = made(tmp_path, Scenario(repetitions=3, flows=1, axes=axes), numbers)
    expected = measured([experiment], lambda row: f"{row['algorithm']} {row['axes']['receiver']}")
    (text,) = (each for each in words(experiment) if "window of cubic" in each)
    for metric, part in zip((EXIT, LOST), text.split("; "), strict=True):
        pairs = {
            name: [mine / other for mine, other in zip(expected[f"reno {name}"][metric], of_cubic, strict=True)]
            for name in ("linux", "freebsd")
            for of_cubic in (expected[f"cubic {name}"][metric],)
        }
        medians = {name: statistics.median(each) for name, each in pairs.items()}
        assert plain(re.findall(rf"({NUMBER}) times", part)[0]) == pytest.approx(sum(medians.values()) / 2, rel=0.005)
        ends = re.findall(rf"({NUMBER}) times \(({NUMBER}) … ({NUMBER})\) at receiver (\w+)", part)
        assert [end[3] for end in ends] == sorted(medians, key=lambda name: medians[name])
        for ratio, low, high, name in ends:
            assert plain(ratio) == pytest.approx(medians[name], rel=0.005)
            assert (plain(low), plain(high)) == pytest.approx((min(pairs[name]), max(pairs[name])), rel=0.005)
