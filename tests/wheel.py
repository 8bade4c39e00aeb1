# SPDX-License-Identifier: Apache-2.0
"""howdah installed from a wheel, away from the checkout, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(source: Path, into: Path) -> tuple[Path, Path]:
    """Build the wheel and the sdist of a source tree; no network is used."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, env=_environment())
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return wheel, sdist


def install(wheel: Path, into: Path, *further: Path) -> Path:
    """Install a wheel, and ``further`` ones, into a fresh environment and return its ``bin/``.

    The environment sees what howdah depends on in the site-packages of this Python, but not the howdah there: Python
    reads the .pth file of an editable install in its own site-packages alone.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(into)], check=True)
    python = into / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python)]
    wheels = [str(each) for each in (wheel, *further)]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", *wheels], check=True, env=_environment())
    own = Path(sysconfig.get_path("purelib"))
    (into / own.relative_to(sys.prefix) / "dependencies.pth").write_text(f"{own}\n", encoding="utf-8")
    return into / "bin"


def run(program: Path, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an installed program in a directory, with no trace of the checkout in its environment."""
    return subprocess.run(
        [str(program), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=_environment() | {"COLUMNS": "100"} | variables,
    )


def _environment() -> dict[str, str]:
    left_out = ("PYTHONPATH", "HOWDAH_RUNS")
    return {name: value for name, value in os.environ.items() if name not in left_out}
