# SPDX-License-Identifier: Apache-2.0
"""``python3 summary.py [EXPERIMENT]``: draw where each run left slow start, for a job's summary on GitHub.

A summary cannot show a file of the job, but it renders Mermaid. The output is empty if no flow left slow start.
"""

from __future__ import annotations

import sys

import howdah

_MOST_BARS = 12  # there is no room for more names


def picture(experiment: str) -> str:
    """Return a chart with a bar for each run of the first repetition: its first flow's window at the exit, in BDP."""
    rows = howdah.load(experiment).exits.where(flow=1, repetition=0).to_pylist()
    left = [row for row in rows if row["exit_cwnd_bdp"] is not None]
    if not left:
        return ""
    names = [row["algorithm"] for row in left]
    if len(set(names)) < len(names):
        names = [row["run"].removesuffix("-r0") for row in left]
    shown = list(zip(names, left, strict=True))[:_MOST_BARS]
    title = "Window where the first flow left slow start"
    if len(shown) < len(left):
        title += f" (the first {len(shown)} of {len(left)} runs)"
    return "\n".join(
        [
            "```mermaid",
            "xychart-beta",
            f'    title "{title}"',
            f"    x-axis [{', '.join(_quoted(name) for name, _row in shown)}]",
            '    y-axis "BDP"',
            f"    bar [{', '.join(format(row['exit_cwnd_bdp'], '.3f') for _name, row in shown)}]",
            "```",
        ]
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', "'") + '"'


if __name__ == "__main__":
    sys.stdout.write(picture(sys.argv[1] if len(sys.argv) > 1 else "latest") + "\n")
