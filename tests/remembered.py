# SPDX-License-Identifier: Apache-2.0
"""That a check has found nothing wrong, remembered from one session of tests to the next. Faults never are.

``python -m tests.remembered NAME PATH… -- COMMAND…`` runs a command over files, unless it ended well over the same ones
before, with the same packages of Python; its status.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import distributions
from pathlib import Path

from howdah.build.cache import Cache, content_key


def once(kind: str, key: str, check: Callable[[], None], *, says: str, cache: Cache | None = None) -> bool:
    """Call ``check`` unless it has returned before; whether it was called. Raises what ``check`` raises.

    ``key`` is of all that decides what it finds. ``says`` is kept for who looks into the cache.
    """
    called = False

    def build(directory: Path, _log: Path) -> None:
        nonlocal called
        called = True
        check()
        (directory / "passed").write_text(f"{says}\n", encoding="utf-8")

    (cache or Cache()).build(kind, key, build)
    return called


def run_once(name: str, paths: Sequence[Path], command: Sequence[str], cache: Cache | None = None) -> int:
    """The command's status; 0 where it need not run."""
    files = sorted(file for path in paths for file in (path, *path.rglob("*")) if file.is_file())
    packages = sorted(f"{each.name} {each.version}" for each in distributions())
    contents = (part for file in files for part in (str(file), file.read_bytes()))
    key = content_key(sys.version, *packages, *command, *contents)

    def check() -> None:
        subprocess.run(command, check=True)

    try:
        once("checked-files", key, check, says=name, cache=cache)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    end = sys.argv.index("--")
    sys.exit(run_once(sys.argv[1], [Path(path) for path in sys.argv[2:end]], sys.argv[end + 1 :]))
