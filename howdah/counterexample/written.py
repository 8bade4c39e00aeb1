# SPDX-License-Identifier: Apache-2.0
"""A counterexample as a profile of a few lines, which any command takes: what it shows, why, and a claim that keeps
it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from howdah.counterexample.goal import CandidateScore, Crash, Extreme, Falsify, Goal
from howdah.profile.profile import to_yaml

_WIDTH = 100
_WITHIN = "10 %"


def profile_text(
    data: dict[str, Any], goal: Goal, score: CandidateScore, why: list[str], origin: str, name: str, directory: Path
) -> str:
    """The YAML of a counterexample called ``name``. ``directory`` is where relative paths of ``data`` start."""
    shown = {key: value for key, value in data.items() if key not in ("keep", "quick") and value != []}
    shown["name"] = name
    shown["description"] = f"A counterexample: {goal.says}."
    shown.pop("claims", None)
    if not isinstance(goal, Crash):
        shown["claims"] = [_claim(goal, score)]
    if isinstance(shown.get("modules"), list):
        shown["modules"] = [_absolute(each, directory) for each in shown["modules"]]
    lines = [f"{goal.says[:1].upper()}{goal.says[1:]}: {score.text}.", *why, origin]
    comment = "\n".join(f"# {part}" for line in lines for part in textwrap.wrap(line, _WIDTH))
    return f"{comment}\n{to_yaml(shown)}"


def _claim(goal: Goal, score: CandidateScore) -> dict[str, Any]:
    """The claim that fails here; of a number the claim that it is what was found."""
    if isinstance(goal, Falsify):
        return goal.claim.model_dump(by_alias=True, exclude_unset=True)
    assert isinstance(goal, Extreme)
    value = goal.goal.model_dump(by_alias=True, exclude_unset=True, exclude={"than", "by"})
    claim: dict[str, Any] = {"id": "as-found", "says": f"{goal.says} is {score.text}", "value": value}
    expect: dict[str, Any] = {"equals": score.written, "within": _WITHIN}
    if goal.goal.than is not None:
        claim["than"] = goal.goal.than.model_dump(by_alias=True, exclude_unset=True)
        expect = {goal.goal.by: expect}
    return {**claim, "expect": expect}


def _absolute(module: Any, directory: Path) -> Any:
    if isinstance(module, str):
        return str((directory / module).resolve())
    if isinstance(module, dict) and "file" in module:
        return {**module, "file": _absolute(module["file"], directory)}
    return module
