# SPDX-License-Identifier: Apache-2.0
"""How Ansible carries out a play: with Mitogen, which keeps one Python process on each machine, where it is installed.

Ansible alone starts Python on the machine for every task. An emulated processor takes seconds for that.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_STRATEGY = "mitogen_linear"
# Ansible gives no promise to strategies of others, so a release that nobody has tried here does without.
_NEWEST_TRIED = (2, 19)


def strategy(program: Path) -> dict[str, str]:
    """Variables for this ansible-playbook that choose Mitogen's strategy.

    Empty where Mitogen is not installed, for an ansible-playbook of another Python environment than this one, and for a
    release of ansible-core that is newer than those tried.
    A user's own ``ANSIBLE_STRATEGY`` has precedence: the caller merges these below its own variables.
    """
    if program.parent != Path(sys.executable).parent or not _tried():
        return {}
    found = importlib.util.find_spec("ansible_mitogen")
    if found is None or not found.submodule_search_locations:
        return {}
    plug_ins = Path(next(iter(found.submodule_search_locations))) / "plugins" / "strategy"
    return {"ANSIBLE_STRATEGY": _STRATEGY, "ANSIBLE_STRATEGY_PLUGINS": str(plug_ins)}


def _tried() -> bool:
    try:
        release = version("ansible-core")
    except PackageNotFoundError:
        return False
    found = re.match(r"(\d+)\.(\d+)", release)
    return found is not None and (int(found[1]), int(found[2])) <= _NEWEST_TRIED
