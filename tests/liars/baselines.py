# SPDX-License-Identifier: Apache-2.0
"""Lies of a night and of its baseline, over sheets made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from howdah.errors import HowdahError
from howdah.nightly.change import label
from howdah.nightly.power import check_provable
from howdah.nightly.sheet import Baseline, NightSheet, Repetition, Value
from howdah.nightly.suite import chosen, read_suite
from howdah.record.directory import read_json, write_json
from tests.liars.bench import Bench
from tests.liars.liar import Catch, ToldLiar
from tests.nightly_factory import SUITE, changed, night, origin, sheet, usual, write_suite

Told = Callable[[Bench, Path], list[Catch]]

NAME = "test-made-debian-6.12"


def _usual() -> NightSheet:
    return sheet(NAME, usual)


def _night(tonight: Callable[[], NightSheet], before: Callable[[], NightSheet | None] = _usual) -> Told:
    """Each cell that makes a night fail, and what the night says."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        made = night(path, before(), tonight())
        return [Catch("state", label(cell.state), made.text()) for cell in made.failing]

    return told


def _stored(change: Callable[[Path], object] = lambda _file: None) -> Told:
    """Read a baseline whose file somebody changed."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        baseline = Baseline(path)
        baseline.accept(_usual())
        change(baseline.file(NAME))
        try:
            baseline.read(NAME)
        except HowdahError as error:
            return [Catch("error", type(error).__name__, str(error))]
        return []

    return told


def _written(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text, encoding="utf-8")


def _one_number_edited(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "0.909" in text
    file.write_text(text.replace("0.909", "0.919", 1), encoding="utf-8")


def _one_cell_of_another_night(file: Path) -> None:
    """As version control merges two baselines, without a conflict."""
    other = Baseline(file.parent / "other")
    other.accept(_measures(utilisation=0.7)())
    data = read_json(file)
    data["cells"]["cubic"] = read_json(other.file(NAME))["cells"]["cubic"]
    write_json(file, data)


def _suite(repetitions: int) -> Told:
    """What howdah says of a suite before it runs anything of it."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        text = SUITE.replace("repetitions: 10", f"repetitions: {repetitions}")
        suite = read_suite(write_suite(path, text))
        try:
            check_provable(suite, chosen(suite, []))
        except HowdahError as error:
            return [Catch("error", type(error).__name__, str(error))]
        return []

    return told


def _measures(**values: Value) -> Callable[[], NightSheet]:
    """A night on which some measures of CUBIC are these, with a little noise where they are numbers."""

    def measures(slug: str, number: int) -> dict[str, Value]:
        noisy = {
            name: value + 0.001 * (number % 4) if isinstance(value, float) else value for name, value in values.items()
        }
        return changed(slug, number, **noisy)

    return lambda: sheet(NAME, measures)


def _invalid() -> NightSheet:
    made = sheet(NAME, usual)
    made.cells["cubic"].repetitions[4] = Repetition("invalid", 1, {}, "the buffer was 3 packets deep")
    return made


def _absent() -> NightSheet:
    made = sheet(NAME, usual)
    del made.cells["cubic"].repetitions[9]
    return made


def _not_built() -> NightSheet:
    made = sheet(NAME, usual)
    made.cells, made.problem = {}, "tcp_cubic.c:57: error"
    return made


def _rare_losses() -> NightSheet:
    return sheet(
        NAME, lambda slug, number: changed(slug, number, retransmitted_packets__1=900.0 if number in (1, 6) else 0.0)
    )


def _few_repetitions() -> NightSheet:
    """Three of ten count, and the path is used a little more."""
    made = sheet(NAME, lambda slug, number: changed(slug, number, utilisation=0.9001 + 0.001 * number))
    for number in range(3, 10):
        made.cells["cubic"].repetitions[number] = Repetition("invalid", 1, {}, "a reason")
    return made


def _without_primary_measures(shift: float) -> Callable[[], NightSheet]:
    return lambda: sheet(NAME, lambda _slug, number: {"exit_round@1": 7.0 + shift + number})


def _other_seeds() -> NightSheet:
    made = _usual()
    for each in made.cells["cubic"].repetitions.values():
        each.seed = 2
    return made


def _of_one_kernel() -> NightSheet:
    return sheet(NAME, usual, made_by=origin("kernel"))


def _one_float() -> NightSheet:
    """The same kernel and plan; one measure of one repetition differs by as little as a float can."""
    made = _of_one_kernel()
    measures = made.cells["cubic"].repetitions[7].metrics
    measures["utilisation"] = float(measures["utilisation"] or 0) * (1 + 1e-15)
    return made


def _other_analysis() -> NightSheet:
    return sheet(NAME, lambda slug, number: changed(slug, number, utilisation=0.5),
                 made_by=origin("kernel", analysis="newer"))  # fmt: skip


_EQUAL, _WHOLE = "a night that equals its baseline", "a baseline as it was stored"
_REPEATED, _CAN_SEE = "a night of the same kernel and plan", "a suite with enough repetitions"

HONEST_BASELINES: dict[str, Told] = {
    _EQUAL: _night(_usual),
    _WHOLE: _stored(),
    _REPEATED: _night(_of_one_kernel, _of_one_kernel),
    _CAN_SEE: _suite(10),
}


def _state(
    name: str,
    lie: str,
    state: str,
    words: str,
    tonight: Callable[[], NightSheet],
    before: Callable[[], NightSheet | None] = _usual,
    honest: str = _EQUAL,
) -> ToldLiar:
    return ToldLiar(name, "baseline", lie, Catch("state", state, words), honest, _night(tonight, before))


def _regression(name: str, lie: str, words: str, tonight: Callable[[], NightSheet]) -> ToldLiar:
    return ToldLiar(name, "baseline", lie, Catch("state", "regression", words), _EQUAL, _night(tonight))


BASELINES = [
    _regression(
        "more-retransmissions",
        "Forty packets more are retransmitted tonight.",
        "retransmitted_packets",
        _measures(retransmitted_packets__1=40.0),
    ),
    _regression(
        "less-utilisation",
        "Tonight the path is used by a fifth less.",
        "utilisation",
        _measures(utilisation=0.7),
    ),
    _regression(
        "another-cause-of-the-exit",
        "Slow start ends by loss tonight, and ended by delay before.",
        "exit_cause",
        _measures(exit_cause__1="loss"),
    ),
    _regression(
        "measure-that-vanished",
        "A measure has no value tonight.",
        "exit_round",
        _measures(exit_round__1=None),
    ),
    _regression(
        "run-that-does-not-count",
        "A run of tonight is invalid and drops out of the means.",
        "repetition 4 is invalid: the buffer was 3 packets deep",
        _invalid,
    ),
    _regression(
        "run-that-is-not-there",
        "A run of tonight was not made and drops out of the means.",
        "repetition 9 was not made",
        _absent,
    ),
    _regression(
        "kernel-that-does-not-build",
        "The kernel of tonight does not build, so that nothing is compared.",
        "cannot be run: tcp_cubic.c:57: error",
        _not_built,
    ),
    ToldLiar(
        "baseline-damaged",
        "baseline",
        "The file of the baseline is cut short.",
        Catch("error", "HowdahError", "this baseline cannot be read"),
        _WHOLE,
        _stored(_written('{"format": 2')),
    ),
    ToldLiar(
        "baseline-of-another-format",
        "baseline",
        "The file of the baseline has a format of another release.",
        Catch("error", "HowdahError", "this baseline cannot be read"),
        _WHOLE,
        _stored(_written('{"format": 99}')),
    ),
    _state(
        "change-with-too-few-repetitions",
        "Two of ten runs lose 900 packets: more than matters, and too rare to be proven.",
        "changed, too few repetitions",
        "retransmitted_packets",
        _rare_losses,
    ),
    _state(
        "night-with-other-seeds",
        "All runs of tonight have other seeds than those of the baseline.",
        "cannot tell",
        "only 0 repetitions are in both nights with the same seed",
        _other_seeds,
    ),
    _state(
        "night-that-can-prove-nothing",
        "Only three repetitions count in both nights, too few to prove any change.",
        "cannot tell",
        "3 repetitions in both nights can prove no change",
        lambda: sheet(NAME, usual),
        _few_repetitions,
    ),
    _state(
        "night-without-primary-measures",
        "The runs have none of the measures that decide.",
        "cannot tell",
        "it has none of the primary measures",
        _without_primary_measures(0.1),
        _without_primary_measures(0.0),
    ),
    _state(
        "first-night",
        "There is no baseline, so that nothing differs from it.",
        "new",
        "it has no baseline",
        _usual,
        lambda: None,
    ),
    _state(
        "same-kernel-and-another-result",
        "One measure of one run differs in its last digit, though kernel, plan and seed are the same.",
        "not repeatable",
        "differs in 1 of 10 repetitions",
        _one_float,
        _of_one_kernel,
        _REPEATED,
    ),
    _state(
        "howdah-changed-its-mind",
        "The same runs give another utilisation, because howdah computes it otherwise.",
        "howdah changed",
        "howdah itself has changed since the baseline (the analysis)",
        _other_analysis,
        _of_one_kernel,
        _REPEATED,
    ),
    ToldLiar(
        "suite-that-cannot-see",
        "baseline",
        "A suite has so few repetitions that no change could be proven, however large.",
        Catch("error", "ProfileError", "3 repetitions can prove no change"),
        _CAN_SEE,
        _suite(3),
    ),
    ToldLiar(
        "baseline-edited",
        "baseline",
        "Somebody changed one number of the baseline.",
        Catch("error", "HowdahError", "somebody edited or merged it"),
        _WHOLE,
        _stored(_one_number_edited),
    ),
    ToldLiar(
        "baseline-merged",
        "baseline",
        "The baseline has one cell of another night, as version control merges two of them.",
        Catch("error", "HowdahError", "somebody edited or merged it"),
        _WHOLE,
        _stored(_one_cell_of_another_night),
    ),
]
