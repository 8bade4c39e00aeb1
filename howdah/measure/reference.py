# SPDX-License-Identifier: Apache-2.0
"""Makes the list of metrics in docs/measures.md from the table of metrics; ``--check`` tells whether it is current.

``python -m howdah.measure.reference [--check] [docs]``
"""

from __future__ import annotations

import re
import sys

from howdah.generated import between, docs_of, keep_current
from howdah.metric import TEXT, Metric, known_metrics

PAGE_NAME = "measures.md"
BEGIN = "<!-- Made by `make references` from reports/measures.yaml: do not edit below. -->"
END = "<!-- Made by `make references`: end. -->"
_PROCESSOR_TIME = "cpu_"
_WORDS = "median|mean|longest|largest|sender|receiver|three to eight|more than eight|two|one|no"
_TOKEN = re.compile(rf"\d+(?:\.\d+)?|\b(?:{_WORDS})\b")  # the only differences between meanings of one family
_HEAD = """## Every metric

These have no definition above; [cpu.md](cpu.md) has those of processor time (`cpu_…`).
`howdah list metrics` prints the meaning of every metric, and metrics.json has the unit in each row.
The unit of `exit_quantity` and `exit_threshold` is that of the exit's cause.
"""
_WORSE = """
[`howdah nightly`](nightly.md) decides by which way a change is for the worse.
Of a metric that is in neither row, no way is.

| worse | metrics |
|---|---|"""


def metric_list(above: str) -> str:
    """Return a row for each metric that is neither in ``above`` nor on the page of processor time, and the lists of
    metrics of which more, or less, is worse."""
    further = [
        each
        for each in known_metrics().values()
        if f"`{each.name}`" not in above and not each.name.startswith(_PROCESSOR_TIME)
    ]
    families: dict[tuple[str, str], list[Metric]] = {}
    for each in further:
        families.setdefault((_TOKEN.sub("#", each.meaning), each.unit), []).append(each)
    rows = ["| metric | unit | meaning |", "|---|---|---|", *map(_row, families.values())]
    return "\n".join([_HEAD, *rows, _WORSE, *(_worse(way) for way in ("more", "less"))])


def _row(family: list[Metric]) -> str:
    """Return the row of metrics whose meanings differ only in a number or a word of ``_WORDS``."""
    unit = "" if family[0].unit == TEXT else family[0].unit
    names = ", ".join(f"`{metric.name}`" for metric in family)
    varying = zip(*(_TOKEN.findall(metric.meaning) for metric in family), strict=True)
    first, *others = _TOKEN.split(family[0].meaning)
    told = (", ".join(dict.fromkeys(each)) for each in varying)
    meaning = first + "".join(f"{token}{words}" for token, words in zip(told, others, strict=True))
    return f"| {names} | {unit} | {meaning.replace('|', chr(92) + '|')} |"


def _worse(way: str) -> str:
    names = ", ".join(f"`{metric.name}`" for metric in known_metrics().values() if metric.worse == way)
    return f"| {way} | {names} |"


def page(text: str) -> str:
    """Return the page with the current list. Raise HowdahError if it lacks the markers."""
    return between(text, BEGIN, END, metric_list(text.partition(BEGIN)[0]), PAGE_NAME)


def main(arguments: list[str]) -> int:
    path = docs_of(arguments) / PAGE_NAME
    return keep_current({path: page(path.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
