# SPDX-License-Identifier: Apache-2.0
"""The night as test harnesses read it: JUnit's XML, and KTAP of Linux (Documentation/dev-tools/ktap.rst): a subtest an
experiment, a case a cell. What a case took is a diagnostic line of KTAP, which has no field for it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import groupby

from howdah.nightly.cell import CellResult, label, one_line
from howdah.nightly.night import Night, settings

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(night: Night) -> str:
    """One document. What fails is a *failure*, or an *error* where a kernel or runs cannot be had or nothing could be
    decided; what has nothing to be compared with, and need not have, is *skipped*. Times are those of the runs."""
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
    """Kind of the element (empty where the cell passes), message and text."""
    reasons = night.reasons(cell)
    if reasons:
        text = "\n".join([*reasons, "", f"again: {night.command(cell)}", f"by itself: {night.look(cell)}"])
        nothing_to_see = cell.problem is not None or cell.state in ("new", "gone", "cannot tell")
        kind = "error" if nothing_to_see or len(cell.broken) == len(reasons) else "failure"
        more = f" (and {len(reasons) - 1} more)" if reasons[1:] else ""
        return kind, f"{label(cell.state)}: {reasons[0]}{more}", text
    if cell.state == "not built":
        return "skipped", f"cannot be run, nor could the baseline: {cell.problem}", ""
    if cell.state == "new":
        return "skipped", "there is no baseline of it: howdah nightly --accept", ""
    if cell.state == "gone":
        return "skipped", "the baseline has it, the suite does not", ""
    return "", "", ""


def _clean(text: str) -> str:
    """Without the characters that XML has no way to write, such as those of a console's colours."""
    return _NOT_XML.sub("", text)


_INDENT = "  "


def ktap(night: Night) -> str:
    """One document. A case that has nothing to be compared with, and need not have, is skipped."""
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
    """The directive of what was not compared; empty where something was, or where it fails."""
    if any(night.fails(cell) or cell.state not in ("not built", "new", "gone") for cell in cells):
        return ""
    return f" # SKIP {', '.join(dict.fromkeys(label(cell.state) for cell in cells))}"


def _name(text: str) -> str:
    """Without ``#``, which would begin a directive."""
    return one_line(text).replace("#", "_").strip() or "unnamed"
