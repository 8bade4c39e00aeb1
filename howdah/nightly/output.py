# SPDX-License-Identifier: Apache-2.0
"""The output directory of a night: page, JUnit, KTAP, mail, samples for Prometheus, and night.json.

JUnit XML and KTAP (Linux' Documentation/dev-tools/ktap.rst) have a subtest for each experiment and a case for each
cell. KTAP has no field for a case's duration, so it is a diagnostic line. The mail has a subject, a line for each
regression, and for experiments with failing cells the findings and B − A at each point. Then come the table of cells
with a summary like that of ``git diff --stat``, kernels and paths, and the commands that repeat them. Its lines are
sorted by name and have no times, so that ``git diff`` of two nights shows what changed.
"""

from __future__ import annotations

import math
import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from howdah.errors import HowdahError, explain
from howdah.nightly.change import CellResult, Outcome, change_text, label, one_line
from howdah.nightly.commits import CommitSpan
from howdah.nightly.night import Night, settings
from howdah.nightly.page import write_page
from howdah.number import counted
from howdah.profile import Profile
from howdah.publish.blocks import SAMPLES, SUFFIX
from howdah.publish.metric import Families, MetricSamples, PublishedMetric
from howdah.publish.openmetrics import openmetrics
from howdah.record.directory import write_json
from howdah.report.difference import difference_text
from howdah.report.ending import results
from howdah.report.findings import findings
from howdah.report.results import read_shown
from howdah.report.source import TableSource
from howdah.report.subject import subjects_of
from howdah.report.table import Table

RANGES = ".ranges"  # separate from SUFFIX: a range of commits is not a series of nights
BISECT_LOG = "bisect.log"


def write_night(night: Night) -> Path:
    """Write the night's directory, whole or not at all, and a link ``latest`` to it. Raises HowdahError."""
    root = night.runs / f"{night.suite.name}{SUFFIX if night.span is None else RANGES}"
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    place, partial = root / name, root / f".partial-{name}"
    try:
        partial.mkdir(parents=True)
        write_json(partial / "night.json", night.file().plain())
        (partial / "junit.xml").write_text(junit(night), encoding="utf-8")
        (partial / "night.ktap").write_text(ktap(night), encoding="utf-8")
        (partial / "mail.txt").write_text(mail(night), encoding="utf-8")
        if isinstance(night.span, CommitSpan):
            (partial / BISECT_LOG).write_text(night.span.bisect_log(), encoding="utf-8")
        else:
            with (partial / SAMPLES).open("w", encoding="utf-8") as file:
                file.writelines(openmetrics(families(night)))
        write_page(night, partial / "index.html")
        partial.rename(place)
        link = root / f".latest-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        link.replace(root / "latest")
    except OSError as error:
        raise HowdahError(f"the night cannot be written: {explain(error)}", where=str(root)) from error
    return place


def write_copies(night: Night, ktap_file: Path | None, mail_file: Path | None) -> None:
    """Write KTAP and mail to the given files; ``-`` is standard output. Raises HowdahError."""
    for file, text in ((ktap_file, ktap(night)), (mail_file, mail(night))):
        if file is None:
            continue
        target = Path("/dev/stdout") if str(file) == "-" else file
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise HowdahError(f"it cannot be written: {explain(error)}", where=str(file)) from error


_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(night: Night) -> str:
    """Return a JUnit document. A failing cell is a *failure*, or an *error* if it lacks a kernel or runs or could not
    be decided; a cell without anything to compare with is *skipped* unless it must have it. Times are those of the
    runs."""
    root = ET.Element("testsuites", name=f"howdah {night.suite.name}")
    for experiment, cells in groupby(night.cells, key=lambda cell: cell.experiment):
        root.append(_suite(night, experiment, list(cells)))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{night.wall_s:.3f}")
    ET.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(night: Night, experiment: str, cells: list[CellResult]) -> ET.Element:
    suite = ET.Element("testsuite", name=experiment, timestamp=night.started.partition("+")[0])
    counts = {"failure": 0, "error": 0, "skipped": 0}
    properties = ET.SubElement(suite, "properties")
    for name, value in (("kernel", cells[0].kernel), ("baseline", night.baseline_name), ("tests", str(night.tests))):
        ET.SubElement(properties, "property", name=name, value=_clean(value))
    for cell in cells:
        case = ET.SubElement(suite, "testcase", classname=experiment, name=cell.slug, time=f"{cell.wall_s:.3f}")
        kind, message, text = _result(night, cell)
        if kind:
            counts[kind] += 1
            element = ET.SubElement(case, kind, message=_clean(message))
            if kind != "skipped":
                element.set("type", label(cell.state))
                element.text = _clean(text)
        out = night.hints(cell)
        if out:
            ET.SubElement(case, "system-out").text = _clean("\n".join(out))
    suite.set("tests", str(len(cells)))
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(counts[kind]))
    suite.set("time", f"{sum(cell.wall_s for cell in cells):.3f}")
    return suite


def _result(night: Night, cell: CellResult) -> tuple[str, str, str]:
    """Return the element's kind (empty if the cell passes), message and text."""
    reasons = night.reasons(cell)
    if reasons:
        text = "\n".join([*reasons, "", f"again: {night.command(cell)}", f"alone: {night.look(cell)}"])
        nothing_to_see = cell.problem is not None or cell.state in ("new", "gone", "cannot tell")
        kind = "error" if nothing_to_see or len(cell.broken) == len(reasons) else "failure"
        more = f" (and {len(reasons) - 1} more)" if reasons[1:] else ""
        return kind, f"{label(cell.state)}: {reasons[0]}{more}", text
    if cell.state == "not built":
        return "skipped", f"cannot be run, and neither could the baseline: {cell.problem}", ""
    if cell.state == "new":
        return "skipped", "it has no baseline: howdah nightly --accept stores one", ""
    if cell.state == "gone":
        return "skipped", "the baseline has it, the suite does not", ""
    return "", "", ""


def _clean(text: str) -> str:
    """Remove characters that XML cannot represent, such as those of a console's colours."""
    return _NOT_XML.sub("", text)


_INDENT = "  "


def ktap(night: Night) -> str:
    """Return a KTAP document. A case without anything to compare with is skipped unless it must have it."""
    groups = [(name, list(cells)) for name, cells in groupby(night.cells, key=lambda cell: cell.experiment)]
    lines = ["KTAP version 1", f"1..{len(groups)}"]
    ran_on = settings(night)
    for number, (experiment, cells) in enumerate(groups, start=1):
        lines += [_INDENT + line for line in _subtest(night, experiment, cells, ran_on[experiment])]
        sign = "not ok" if any(night.fails(cell) for cell in cells) else "ok"
        lines.append(f"{sign} {number} {_name(experiment)}{_skipped(night, cells)}")
    return "\n".join(lines) + "\n"


def _subtest(night: Night, experiment: str, cells: list[CellResult], ran_on: str) -> list[str]:
    lines = ["KTAP version 1", f"# Subtest: {_name(experiment)}", f"1..{len(cells)}"]
    lines.append(f"# kernels and paths: {one_line(ran_on)}")
    for number, cell in enumerate(cells, start=1):
        lines += [f"# {cell.slug}: {one_line(text)}" for text in [*night.reasons(cell), *night.hints(cell)]]
        if night.fails(cell):
            lines.append(f"# {cell.slug}: again: {one_line(night.command(cell))}")
        lines += [f"# {cell.slug}: state: {label(cell.state)}", f"# {cell.slug}: duration_ms: {cell.wall_s * 1000:.0f}"]
        sign = "not ok" if night.fails(cell) else "ok"
        lines.append(f"{sign} {number} {_name(cell.slug)}{_skipped(night, [cell])}")
    return lines


def _skipped(night: Night, cells: list[CellResult]) -> str:
    """The SKIP directive of cells that were not compared; empty if one was compared or fails."""
    if any(night.fails(cell) or cell.state not in ("not built", "new", "gone") for cell in cells):
        return ""
    return f" # SKIP {', '.join(dict.fromkeys(label(cell.state) for cell in cells))}"


def _name(text: str) -> str:
    """Replace ``#``, which would begin a directive."""
    return one_line(text).replace("#", "_").strip() or "unnamed"


_WORSE: tuple[Outcome, ...] = ("regression", "vanished", "not repeatable", "howdah changed")
_TOLD: tuple[Outcome, ...] = (*_WORSE, "unproven")
_BETTER: tuple[Outcome, ...] = ("improvement",)
_SIGNS = (("-", "worse", _WORSE), ("?", "not proven", ("unproven",)), ("+", "better", _BETTER))
_STAT_COLUMNS = 40  # most signs in a line of the summary


def mail(night: Night) -> str:
    """Headers, an empty line, and the text: input for ``sendmail``."""
    failing = night.failing
    lines = [f"Subject: [howdah] {night.suite.name}: {headline(night)}", ""]
    if night.suite.description:
        lines += [night.suite.description, ""]
    lines += _section("Regressions", regression_lines(night))
    lines += _section("Improvements", sorted(_lines(night, _BETTER, night.cells)))
    for experiment in dict.fromkeys(cell.experiment for cell in sorted(failing, key=_order)):
        table = _results(night, experiment)
        if table is not None:
            lines += _section(f"Findings in {experiment}", [_plain(sentence) for sentence in findings(table)])
            lines += _section(f"B − A in {experiment}", difference_text(subjects_of(table)).splitlines())
    lines += _section("Problems", sorted(_plain(each) for each in night.problems))
    lines += [*_heading("Cells"), *_table(night), "", *_stat(night), ""]
    lines += _section("Kernels and paths", [_plain(f"{name}  {text}") for name, text in settings(night).items()])
    commands = [f"{cell.id}\n  {night.command(cell)}" for cell in sorted(failing, key=_order) if cell.state != "gone"]
    lines += _section("To repeat", commands)
    lines.append(f"The baseline is {night.baseline_name}.")
    return "\n".join(lines) + "\n"


def headline(night: Night) -> str:
    """``2 of 19 cells fail: regression``; ``none of 19 cells fails``."""
    failing = night.failing
    if not failing:
        return f"none of {len(night.cells)} cells fails"
    states = ", ".join(sorted({label(cell.state) for cell in failing}))
    return f"{len(failing)} of {len(night.cells)} cells fail{'' if failing[1:] else 's'}: {states}"


def regression_lines(night: Night) -> list[str]:
    """One line for each measure that counts against a failing cell, for each other reason, and for each note on both
    nights, such as other settings; sorted."""
    failing = night.failing
    lines = list(_lines(night, _TOLD, failing))
    for cell in failing:
        others = [*cell.broken, *([cell.problem] if cell.problem else []), *([cell.untold] if cell.untold else [])]
        if not others and not cell.of(*_TOLD):
            others = night.reasons(cell)
        lines += [f"{cell.id}  {label(cell.state)}: {_plain(text)}" for text in others]
        lines += [f"{cell.id}  note: {_plain(text)}" for text in cell.notes]
    return sorted(lines)


def _lines(night: Night, outcomes: tuple[Outcome, ...], cells: list[CellResult]) -> Iterator[str]:
    for cell in cells:
        for each in cell.of(*outcomes):
            if each.outcome != "unproven" or (each.is_primary and not night.allow_unproven):
                word = "" if each.outcome == "unproven" else f"  {label(each.outcome)}"  # the text already says so
                yield _plain(f"{cell.id}  {change_text(each)}{word}")


def _results(night: Night, experiment: str) -> Table | None:
    """Return tonight's results of an experiment; None without readable runs."""
    path = night.runs / experiment
    if not (path / "experiment.json").exists():
        return None
    try:
        return results([read_shown(path)], TableSource())
    except HowdahError:
        return None  # night.problems reports it


def _plain(text: str) -> str:
    """Put text on one line, without terminal control characters."""
    return one_line(text).strip()


def _table(night: Night) -> list[str]:
    rows = [
        ("fails" if night.fails(cell) else "", label(cell.state), cell.id) for cell in sorted(night.cells, key=_order)
    ]
    width = max((len(state) for _sign, state, _id in rows), default=0)
    return [f"{sign:<5}  {state:<{width}}  {name}" for sign, state, name in rows]


def _stat(night: Night) -> list[str]:
    """A summary like that of ``git diff --stat``: for each cell the numbers of measures that are worse, not proven and
    better, and their sums."""
    cells = sorted(night.cells, key=_order)
    counts = [tuple(len(cell.of(*outcomes)) for _sign, _word, outcomes in _SIGNS) for cell in cells]
    scale = min(1.0, _STAT_COLUMNS / max((*map(sum, counts), 1)))
    width = max((len(cell.id) for cell in cells), default=0)
    lines = []
    for cell, numbers in zip(cells, counts, strict=True):
        signs = "".join(sign * math.ceil(count * scale) for (sign, *_), count in zip(_SIGNS, numbers, strict=True))
        if signs:
            lines.append(f" {cell.id:<{width}} | {sum(numbers):>3} of {len(cell.comparisons)} {signs}")
    compared = sum(len(cell.comparisons) for cell in cells)
    sums = [f"{sum(each[at] for each in counts)} {word} ({sign})" for at, (sign, word, _) in enumerate(_SIGNS)]
    return [*lines, f" {', '.join([counted(len(cells), 'cell'), f'{compared} comparisons', *sums])}"]


def _section(title: str, lines: list[str]) -> list[str]:
    return [*_heading(title), *lines, ""] if lines else []


def _heading(title: str) -> list[str]:
    return [title, "-" * len(title)]


def _order(cell: CellResult) -> str:
    return cell.id


_CELL = ("suite", "experiment", "cell", "item", "kernel", "algorithm", "receiver")
_MEASURE = (*_CELL, "measure", "flow", "number")

METRICS: tuple[PublishedMetric, ...] = (
    PublishedMetric("howdah_nightly_cells", "gauge", "Cells of the suite by state.", ("suite", "state")),
    PublishedMetric("howdah_nightly_comparisons", "gauge", "Comparisons tested in the night.", ("suite",)),
    PublishedMetric("howdah_nightly_duration_seconds", "gauge", "Wall time of the night.", ("suite",)),
    PublishedMetric(
        "howdah_nightly_end_timestamp_seconds", "gauge", "When the night ended, in seconds since 1970.", ("suite",)
    ),
    PublishedMetric("howdah_nightly_regressed", "gauge", "1 if the cell fails the night, else 0.", _CELL),
    PublishedMetric("howdah_nightly_state", "gauge", "1 for the state of the cell.", (*_CELL, "state")),
    PublishedMetric(
        "howdah_nightly_cell_duration_seconds", "gauge", "Wall time that the runs of the cell took.", _CELL
    ),
    PublishedMetric("howdah_nightly_measures", "gauge", "Comparisons of the cell by outcome.", (*_CELL, "outcome")),
    PublishedMetric(
        "howdah_nightly_change_ratio",
        "gauge",
        "Mean of the measure tonight less that of the baseline, as a share of the latter.",
        _MEASURE,
    ),
    PublishedMetric("howdah_nightly_p_value", "gauge", "Corrected p-value of the measure's change.", _MEASURE),
)
_CELLS, _TESTS, _DURATION, _END, _REGRESSED, _STATE, _TIME, _MEASURES, _CHANGE, _P = METRICS


def families(night: Night) -> Families:
    """Return one sample of each series, at the end of the night."""
    at = [round(datetime.fromisoformat(night.ended).timestamp() * 1000)]
    suite = {"suite": night.suite.name}
    found: Families = {
        _CELLS: [MetricSamples({**suite, "state": state}, at, [float(n)]) for state, n in sorted(night.states.items())],
        _TESTS: [MetricSamples(suite, at, [float(night.tests)])],
        _DURATION: [MetricSamples(suite, at, [night.wall_s])],
        _END: [MetricSamples(suite, at, [at[0] / 1000])],
    }
    names = {one.name: _flow_names(one.profile) for one in night.suite.series}
    for cell in night.cells:
        labels = {**suite, **_labels(cell)}
        values = [(_REGRESSED, {}, float(night.fails(cell))), *_values(cell, names.get(cell.experiment, {}))]
        for metric, more, value in values:
            found.setdefault(metric, []).append(MetricSamples({**labels, **more}, at, [value]))
    return found


def _labels(cell: CellResult) -> dict[str, str]:
    found = {"experiment": cell.experiment, "cell": cell.slug, "item": cell.item, "kernel": cell.kernel}
    return found | {"algorithm": cell.algorithm, "receiver": cell.receiver}


def _flow_names(profile: Profile) -> dict[str, str]:
    """A profile's names of flows, by the numbers that a night uses."""
    flows = profile.points[0].scenario.flows
    return {str(number): flow.name or f"flow{number}" for number, flow in enumerate(flows, start=1)}


def _flow_labels(flow: str, names: dict[str, str]) -> dict[str, str]:
    """The labels that runs use: a flow's name and number, or a group's name, or none for the whole run."""
    if flow in names:
        return {"flow": names[flow], "number": flow}
    return {"flow": flow} if flow else {}


def _values(cell: CellResult, names: dict[str, str]) -> Iterator[tuple[PublishedMetric, dict[str, str], float]]:
    yield _STATE, {"state": cell.state}, 1.0
    yield _TIME, {}, cell.wall_s
    for outcome, count in sorted(Counter(each.outcome for each in cell.comparisons).items()):
        yield _MEASURES, {"outcome": outcome}, float(count)
    least: dict[tuple[str, str], float] = {}  # smallest of two: a measure that some repetitions lack is compared twice
    for each in cell.comparisons:
        labels = {"measure": each.metric} | _flow_labels(each.flow, names)
        if isinstance(each.baseline, float) and each.difference is not None and each.baseline:
            change = each.difference / abs(each.baseline)
            if math.isfinite(change):
                yield _CHANGE, labels, change
        if each.adjusted is not None:
            name = (each.metric, each.flow)
            least[name] = min(each.adjusted, least.get(name, 1.0))
    for (measure, flow), p in least.items():
        yield _P, {"measure": measure} | _flow_labels(flow, names), p
