# SPDX-License-Identifier: Apache-2.0
"""``python3 -m howdah.agent``: run the plan in /howdah/in and write the results to /howdah/out."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.agent.run import AgentRun
from howdah.linux.output import Output
from howdah.linux.progress_port import ProgressPort
from howdah.plan.plan import Plan

_DESCRIPTORS = 65_536  # nodes need some for namespace and collectors, connections up to four
_FLUSH_NS = 500_000_000
WIRINGS = ("netlink", "mininet")
USAGE = "usage: howdah.agent [--in DIRECTORY] [--out DIRECTORY] [--wiring netlink|mininet] [--progress-port]"


def _allow_descriptors() -> None:
    """Raise the limit of open files to what hundreds of hosts need, or to the hard limit if that may not be raised."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, max(_DESCRIPTORS, most)))
    except (OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _kind(plan: Plan) -> type[AgentRun]:
    """The class that runs the plan, whole or one kernel's part of it. Modules that the plan does not need stay
    unloaded."""
    if plan.part is not None:
        from howdah.agent.kernel_part import KernelPartRun

        return KernelPartRun
    return AgentRun


@dataclass
class AgentOptions:
    """Options of the agent: ``inputs`` has plan.json and modules/, raw files go to ``out``, ``wiring`` names the
    builder of the network.

    ``progress_port``: report progress through an I/O port.
    """

    inputs: Path = Path("/howdah/in")
    out: Path = Path("/howdah/out")
    wiring: str = "netlink"
    progress_port: bool = False


def read_options(words: Sequence[str]) -> AgentOptions:
    """Parse the command line without argparse, which would load ten more modules. Raises SystemExit with the usage."""
    found = AgentOptions()
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--progress-port":
            found.progress_port = True
        elif word == "--in" and left:
            found.inputs = Path(left.pop(0))
        elif word == "--out" and left:
            found.out = Path(left.pop(0))
        elif word == "--wiring" and left and left[0] in WIRINGS:
            found.wiring = left.pop(0)
        else:
            raise SystemExit(f"{word!r} is not understood; {USAGE}")
    return found


def main() -> int:
    arguments = read_options(sys.argv[1:])
    _allow_descriptors()
    plan = Plan.from_json((arguments.inputs / "plan.json").read_text(encoding="utf-8"))
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))
    if plan.slice is not None:
        from howdah.agent.part import PartRun
        from howdah.agent.session import AgentSession

        part = PartRun(plan, arguments.inputs, Output(arguments.out), AgentSession.of_standard_streams())
        return 0 if part.execute() else 1
    # Flush only if the files can be read during the run: in a guest each write costs wall time.
    flush_ns = _FLUSH_NS if plan.traits.readable_while_running else None
    output = Output(arguments.out, flush_ns, ProgressPort() if arguments.progress_port else None)
    run = _kind(plan)(plan, arguments.inputs, output, arguments.wiring)
    return 0 if run.execute() else 1


if __name__ == "__main__":
    sys.exit(main())
