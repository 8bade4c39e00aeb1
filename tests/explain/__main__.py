# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/explain.md: runs over drawn paths, what ``howdah explain`` says of their captures, and twins.

``python -m tests.explain draw RUNS FIRST COUNT`` makes the runs of so many seeds, ``table RUNS`` explains them, ``twins
RUNS TWINS`` writes a twin of each and runs it. What is there is not made again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from howdah.command.main import main as howdah
from howdah.explain.explained import Explained
from howdah.explain.overlay import ALIKE
from howdah.explain.twin import twin_text
from tests.explain.damage import DAMAGES, HARMLESS
from tests.explain.drawn import kind_of, profile
from tests.explain.recovery import NOT_GIVEN, RIGHT, WRONG, Truth, can_tell, explained, outcomes, reason_of, recorded

TOLD = "all that a recording can tell"
TOLERANCES = {
    "base RTT": "1 %",
    "rate": "2 %",
    "rate, no queue": "none, and a bound that holds",
    "buffer": "10 %",
    "exit": "one round trip",
    "cause": "the same word",
    "what lost": "the same word",
}


def draw(runs: Path, first: int, count: int) -> None:
    for seed in range(first, first + count):
        if any((runs / f"drawn-{seed}").glob("*/metrics.json")):
            continue
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / f"drawn-{seed}.yaml"
            file.write_text(profile(seed), encoding="utf-8")
            howdah(["run", str(file), "--runs", str(runs), "--no-report"])


def table(runs: Path) -> None:
    """Every run without a damage at each tap, and with one damage, another for each run, at one tap."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    wrong: list[str] = []
    absent: list[str] = []
    captures = Counter[bool]()
    with tempfile.TemporaryDirectory() as place:
        for known in recorded(runs):
            for tap, damage in _tried(known):
                flow = explained(known.taps[tap], damage, Path(place))
                captures[damage == "none"] += 1
                group = tap if damage == "none" else "harmless" if damage in HARMLESS else damage
                for question, worth in outcomes(known, flow, damage).items():
                    for each in ("all", group, *([TOLD] if can_tell(flow, tap, damage) else [])):
                        counts.setdefault((each, question), Counter())[worth] += 1
                    missed = f"{known.seed} {kind_of(known.seed)} {tap} {damage}: {question}"
                    if worth == WRONG:
                        wrong.append(missed)
                    elif worth == NOT_GIVEN:
                        absent.append(f"{missed}: {reason_of(flow, question)}")
    lines = [f"{captures.total()} captures, {captures[False]} of them with a damage", ""]
    for group in sorted({group for group, _ in counts}, key=lambda each: (each != "all", each)):
        lines += [
            f"## {group}",
            "",
            "| question | tolerance | of | right | wrong | not given |",
            "|---|---|---|---|---|---|",
        ]
        for question, tolerance in TOLERANCES.items():
            if (group, question) in counts:
                count = counts[group, question]
                shares = (f"{100 * count[word] / count.total():.1f} %" for word in (RIGHT, WRONG, NOT_GIVEN))
                lines.append(f"| {question} | {tolerance} | {count.total()} | {' | '.join(shares)} |")
        lines.append("")
    listed = [*lines, "Wrong:", *(f"* {each}" for each in wrong), "Not given:", *(f"* {each}" for each in absent)]
    sys.stdout.write("\n".join(listed) + "\n")


def _tried(known: Truth) -> list[tuple[str, str]]:
    damages, taps = [each for each in DAMAGES if each != "none"], list(known.taps)
    one = (taps[known.seed % len(taps)], damages[known.seed % len(damages)])
    return [*((tap, "none") for tap in taps), one]


def twins(runs: Path, made: Path) -> None:
    """Each twin knows the sender's capture alone, and runs without the grid of what is open."""
    counts: dict[str, Counter[str]] = {}
    unlike: list[str] = []
    far: list[str] = []
    for known in recorded(runs):
        with tempfile.TemporaryDirectory() as place:
            flow = explained(known.taps["sender"], "none", Path(place))
            file = Path(place) / f"drawn-{known.seed}.yaml"
            file.write_text(twin_text(flow, file.stem), encoding="utf-8")
            over = _overlay(file, made)
        if over is None:
            unlike.append(f"{known.seed}: it did not run")
            continue
        (twin,) = (each for each in recorded(made) if each.seed == known.seed)
        if flow.exit is not None and known.metrics.get("exit_round") is not None:
            near = _near(known, twin)
            _count(counts, "exit within one round of the recorded one", near)
            _count(counts, "the same cause", twin.metrics.get("exit_cause") == known.metrics["exit_cause"])
            if not near:
                unlike.append(f"{known.seed} {kind_of(known.seed)}: {_exit(known, flow)}, twin {_exit(twin, None)}")
        first = over["runs"][0]
        _count(counts, f"a distance of at most {ALIKE:.0%}", first["distance"] <= ALIKE)
        if first["distance"] > ALIKE:
            apart = ", ".join(f"{name} {share:.0%}" for name, share in first["distances"].items())
            far.append(f"{known.seed} {kind_of(known.seed)}: {apart}; {'; '.join(first['not_explained'])}")
    lines = ["| question | of | right |", "|---|---|---|"]
    for question, count in counts.items():
        lines.append(f"| {question} | {count.total()} | {100 * count[RIGHT] / count.total():.1f} % |")
    listed = [*lines, "", "Elsewhere:", *(f"* {each}" for each in unlike), "Apart:", *(f"* {each}" for each in far)]
    sys.stdout.write("\n".join(listed) + "\n")


def _overlay(file: Path, made: Path) -> dict[str, Any] | None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        howdah(["run", str(file), "--runs", str(made), "--json"])
    found: dict[str, Any] | None = json.loads(said.getvalue()).get("twin")
    return found if found and found["runs"] else None


def _near(known: Truth, twin: Truth) -> bool:
    there = twin.metrics.get("exit_round")
    return there is not None and abs(int(there) - int(known.metrics["exit_round"])) <= 1


def _exit(of: Truth, flow: Explained | None) -> str:
    said = f", explained as {flow.exit.cause}" if flow is not None and flow.exit is not None else ""
    return f"round {of.metrics.get('exit_round')} by {of.metrics.get('exit_cause')}{said}"


def _count(counts: dict[str, Counter[str]], question: str, right: bool) -> None:
    counts.setdefault(question, Counter())[RIGHT if right else WRONG] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    for name in ("draw", "table", "twins"):
        commands.add_parser(name).add_argument("runs", type=Path)
    commands.choices["draw"].add_argument("first", type=int)
    commands.choices["draw"].add_argument("count", type=int)
    commands.choices["twins"].add_argument("made", type=Path)
    told = parser.parse_args()
    if told.command == "draw":
        draw(told.runs, told.first, told.count)
    elif told.command == "table":
        table(told.runs)
    else:
        twins(told.runs, told.made)


if __name__ == "__main__":
    main()
