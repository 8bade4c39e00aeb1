# SPDX-License-Identifier: Apache-2.0
"""``python3 summary.py [EXPERIMENT]``: where each run left slow start, as a picture for a job's summary on GitHub.

A summary shows no file of the job, but it draws Mermaid. It is empty where no flow left slow start.
"""

from __future__ import annotations

import sys

import howdah

_MOST_BARS = 12  # more have no room for their names


def picture(experiment: str) -> str:
    """A bar for each run of the first repetition: the window of its first flow at the exit, in BDP."""
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
