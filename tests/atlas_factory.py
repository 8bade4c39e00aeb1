# SPDX-License-Identifier: Apache-2.0
"""A small atlas made by hand: kinds, a paper, entries, an inconsistency, profiles, and runs without a kernel."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from howdah.atlas.catalogue import Catalogue, read_catalogue
from howdah.atlas.chapter import Chapter, read_chapters
from howdah.claim.claims import judge_claims
from howdah.plan.plan import Plan
from howdah.record.claims import ClaimRow
from tests.claim_factory import Row, make_runs, row

KINDS = "Astart_tab1: experiment\nAstart_tab2: experiment\nAstart_fig1: definition\nAstart_fig16: trace\n"
PAPERS = "- {key: Astart, title: A paper, authors: 'A. Author, B. Author'}\n"
ENTRIES = """\
- id: Astart_tab1
  title: Exit windows
  where: Fig. 1
  setup: 10 Mbit/s, 40 ms
  says: The first start leaves at 30 packets, and <b>never</b> later.
  profiles: [made]
  central: [made/losses, made/window]
  differences: none
- id: Astart_tab2
  title: Utilisation
  where: Fig. 2
  says: CUBIC uses more of the path than Reno.
  profiles: [made]
  central: made/more
- {id: Astart_fig1, title: The map, where: Fig. 3, says: A map., reason: It is a map.}
- {id: Astart_fig16, title: One day, where: Fig. 4, says: A day., reason: The recording was not published.}
"""
INCONSISTENCIES = """\
- title: Two numbers for one
  printed: It says 30 and 31.
  arithmetic: 30 is not 31.
  handled: Both are judged.
  entries: [Astart_tab1]
"""
CAUSES = "[]\n"
PROFILE = """\
howdah: 1
name: made
description: Two algorithms on a short path
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: [1 bdp, 2 bdp]}
algorithm: [cubic, reno]
duration: 10 s
repetitions: 3
quick: {repetitions: 2}
controls:
  no-hystart: {what: HyStart switched off, set: {algorithm: cubic-no-hystart}}
claims:
  - id: window
    entry: Astart_tab1
    says: CUBIC leaves slow start at 30 packets.
    source: A paper, Fig. 1
    value: {metric: exit_cwnd_packets, flow: 1, at: {algorithm: cubic}}
    each: path.buffer
    expect: {equals: 30}
  - id: losses
    entry: Astart_tab1
    says: CUBIC loses packets at the end of slow start.
    source: A paper, Fig. 1
    value: {metric: retransmitted_packets, flow: 1, at: {algorithm: cubic}}
    each: path.buffer
    expect: {above: 10}
    control: no-hystart
    because: HyStart leaves slow start before the queue is full.
  - id: more
    entry: Astart_tab2
    says: CUBIC uses more than Reno.
    source: A paper, Fig. 2
    value: {metric: utilisation, at: {algorithm: cubic}}
    than: {at: {algorithm: reno}}
    each: path.buffer
    expect: more
figures:
  - {id: rows, entry: Astart_tab2, title: Utilisation, kind: bars, x: path.buffer, y: utilisation}
"""


FINDINGS = """\
paper: Astart
learnt:
  says: CUBIC leaves at {made/window}.
  stands_on: {made/window: pass}
findings:
  - status: holds
    says: CUBIC uses {made/more} and Reno {made/more.than}.
    stands_on: {made/more: pass}
  - status: cured
    says: CUBIC loses {made/losses}, and {made/losses.control} without HyStart.
    by: HyStart.
    stands_on: {made/losses: differs}
"""


@dataclass(frozen=True)
class Made:
    """``catalogue`` and ``profiles`` are directories, ``runs`` holds the experiment of the one profile."""

    catalogue: Path
    profiles: Path
    runs: Path

    def read(self) -> Catalogue:
        return read_catalogue(self.catalogue)

    def chapters(self, *, quick: bool = False) -> list[Chapter]:
        """With published results of its own: those of the repository are of other profiles."""
        found = read_chapters(self.profiles, self.runs, quick=quick)
        return [replace(one, results=self.results if one.results is not None else None) for one in found]

    def write_findings(self) -> None:
        (self.catalogue / "findings").mkdir()
        (self.catalogue / "findings" / "paper.yaml").write_text(FINDINGS, encoding="utf-8")

    def published_rows(self) -> dict[str, ClaimRow]:
        """Claims of the runs that were made, as if they were published."""
        return {f"made/{row.id}": row for row in self.chapters()[0].claims()}

    @property
    def results(self) -> Path:
        return self.catalogue / "results"

    def copy(self, directory: Path) -> Made:
        """One that may be changed."""
        shutil.copytree(self.catalogue.parent, directory, dirs_exist_ok=True)
        return Made(directory / "catalogue", directory / "profiles", directory / "runs")


def measured(plan: Plan) -> list[Row]:
    """CUBIC leaves at 30 packets without loss unless HyStart is off, and uses a little more than Reno."""
    overshoots = plan.algorithm == "cubic-no-hystart"
    used = {"cubic": 0.95, "reno": 0.90}.get(plan.algorithm, 0.93) + 0.001 * plan.repetition
    return [
        row("exit_cwnd_packets", 30.0 + plan.repetition * 0.1, "packets", flow=1),
        row("retransmitted_packets", 50.0 + plan.repetition if overshoots else 0.0, "packets", flow=1),
        row("utilisation", used, "ratio"),
    ]


def make_atlas(directory: Path, *, entries: str = ENTRIES, profile: str = PROFILE) -> Made:
    """The files alone, without a run."""
    catalogue, profiles = directory / "catalogue", directory / "profiles"
    (catalogue / "entries").mkdir(parents=True)
    profiles.mkdir()
    (catalogue / "kinds.yaml").write_text(KINDS, encoding="utf-8")
    (catalogue / "papers.yaml").write_text(PAPERS, encoding="utf-8")
    (catalogue / "entries" / "paper.yaml").write_text(entries, encoding="utf-8")
    (catalogue / "inconsistencies.yaml").write_text(INCONSISTENCIES, encoding="utf-8")
    (catalogue / "causes.yaml").write_text(CAUSES, encoding="utf-8")
    (profiles / "made.yaml").write_text(profile, encoding="utf-8")
    return Made(catalogue, profiles, directory / "runs")


def make_judged_atlas(directory: Path) -> Made:
    """With runs of every cell and their claims judged."""
    made = make_atlas(directory)
    experiment = make_runs(directory, made.profiles / "made.yaml", measured)
    judge_claims(experiment)
    return made


@pytest.fixture(scope="module")
def judged_atlas(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """For all tests of a module, which leave it as it is or take a copy."""
    return make_judged_atlas(tmp_path_factory.mktemp("judged"))
