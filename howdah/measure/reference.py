# SPDX-License-Identifier: Apache-2.0
"""The list of metrics in docs/measures.md, made from the table of metrics; ``--check`` says whether it is current.

``python -m howdah.measure.reference [--check] [docs]``
"""

from __future__ import annotations

import sys

from howdah.generated import between, docs_of, keep_current
from howdah.metric import TEXT, Metric, known_metrics

PAGE_NAME = "measures.md"
BEGIN = "<!-- Made by `make references` from reports/measures.yaml: do not edit below. -->"
END = "<!-- Made by `make references`: end. -->"
_HEAD = """## Every metric

`worse` says which way a change is for the worse; where it is empty, neither way is.
[`howdah nightly`](nightly.md) decides by it.
The unit of `exit_quantity` and `exit_threshold` is that of the exit's cause, in each row of its own.
The files are in `howdah/measure/`.
"""


def metric_list() -> str:
    """The list as a Markdown table, a row for each metric, in the order of the table of metrics."""
    head = ["| metric | unit | worse | computed in | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *map(_row, known_metrics().values())])


def _row(metric: Metric) -> str:
    unit = "" if metric.unit == TEXT else metric.unit
    files = ", ".join(f"`{name.rpartition('.')[2]}.py`" for name in metric.modules)
    worse = "" if metric.worse == "either" else metric.worse
    return f"| `{metric.name}` | {unit} | {worse} | {files} | {metric.meaning.replace('|', chr(92) + '|')} |"


def page(text: str) -> str:
    """The page with the list as it is now. Raises HowdahError where it has no marks."""
    return between(text, BEGIN, END, f"{_HEAD}\n{metric_list()}", PAGE_NAME)


def main(arguments: list[str]) -> int:
    path = docs_of(arguments) / PAGE_NAME
    return keep_current({path: page(path.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
