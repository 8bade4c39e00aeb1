# SPDX-License-Identifier: Apache-2.0
"""Where the module parameters of a run were written."""

from __future__ import annotations

from howdah.profile.profile import Cell


def parameter_places(cell: Cell) -> dict[str, str]:
    """``module.parameter`` to its place (``profiles/mine.yaml:12``), for every parameter of the cell's algorithms.

    A parameter that the table of algorithms brings has the place where its algorithm was chosen.
    """
    found = {}
    for name, algorithm in cell.algorithms.items():
        for parameter in algorithm.parameters:
            found[f"{algorithm.module}.{parameter}"] = _place(cell, name, parameter)
    return found


def _place(cell: Cell, name: str, parameter: str) -> str:
    section = cell.scenario.algorithms.get(name)
    while section is not None:
        if parameter in section.parameters:
            return cell.place("algorithms", name, "parameters", parameter)
        if section.like is None:
            break
        # Only an algorithm declared before can be meant, so that this comes to an end.
        name = section.like
        section = cell.scenario.algorithms.get(name)
    chosen = [("flows", index, "algorithm") for index, flow in enumerate(cell.scenario.flows) if flow.algorithm == name]
    return cell.place(*(chosen[0] if chosen else ("algorithm",)))
