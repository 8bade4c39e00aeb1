# SPDX-License-Identifier: Apache-2.0
"""What a browser found nothing wrong with, remembered by its contents: the same page holds what it held before.

What decides that are the bytes of the page, the browser and the fonts it has, and the code that opens and looks. A page
with a fault is never remembered. One that names its own place is another each time and not asked for here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from axe_playwright_python import base as axe

from howdah.build.cache import content_key
from tests import remembered
from tests.browser.conftest import browser_program

HERE = Path(__file__).parent


def once(what: str, contents: Sequence[bytes], look: Callable[[], None]) -> bool:
    """Call ``look`` unless it has returned before for the same contents; whether it was called.

    ``what`` names how it looks. Raises what ``look`` raises.
    """
    machine = _machine(browser_program())
    if machine is None:
        look()
        return True
    own = sorted(HERE.glob("*.py"))
    code = [axe.AXE_SCRIPT.encode(), *(path.name.encode() for path in own), *(path.read_bytes() for path in own)]
    return remembered.once("looked", content_key(what, *machine, *code, *contents), look, says=what)


@lru_cache
def _machine(browser: str | None) -> tuple[str, ...] | None:
    """Versions of the browser and of what drives it, and the fonts. None where one of them cannot be told."""
    match, listing = shutil.which("fc-match"), shutil.which("fc-list")
    if browser is None or match is None or listing is None:
        return None
    # How the machine draws its fonts is told with the font of each family that a page may ask for.
    families = [[match, "-v", family] for family in ("sans-serif", "serif", "monospace", "system-ui")]
    asked = [[browser, "--version"], [listing, "--format", "%{file} %{fontversion}\n"], *families]
    told = [subprocess.run(each, capture_output=True, text=True, check=True).stdout for each in asked]
    told[1] = "".join(sorted(told[1].splitlines(keepends=True)))
    libraries = [f"{name} {version(name)}" for name in ("playwright", "matplotlib", "numpy", "pillow")]
    return sys.version, *libraries, *told
