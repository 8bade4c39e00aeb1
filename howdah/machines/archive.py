# SPDX-License-Identifier: Apache-2.0
"""Archives for the hosts of several machines: programs with all that they import, and the modules' sources.

The same sources give the same bytes, so that a repeated playbook has nothing to copy.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from howdah.place import MODULES, PLAN_FILES, name_of, root_of

# Packages and modules that run on hosts. tests/unit/test_machines_archive.py runs them from the archive alone.
_PROGRAMS = (
    "howdah/__init__.py",
    "howdah/agent/**/*.py",
    "howdah/linux/**/*.py",
    *PLAN_FILES,
    "howdah/publish/__init__.py",
    *(f"howdah/publish/{name}.py" for name in ("endpoint", "exporter", "guard", "metric")),
    "collectors/**/*.py",
)
_MODULES = ("Kbuild", "Makefile", "*/*.c", "*/*.h")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip file
_EPOCH_S = 315532800


def _files(patterns: tuple[str, ...], root: Path | None = None) -> Iterator[Path]:
    found = {path for pattern in patterns for path in (root or root_of(pattern)).glob(pattern) if path.is_file()}
    # An earlier build may have left .mod.c files beside the sources.
    yield from sorted(path for path in found if not path.name.endswith(".mod.c"))


def programs() -> bytes:
    """Return a zip file from which Python can import."""
    import prometheus_client  # pure Python

    client = Path(prometheus_client.__file__).parent
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        own = {name_of(path): path for path in _files(_PROGRAMS)}
        others = {path.relative_to(client.parent): path for path in _files(("*.py", "openmetrics/*.py"), client)}
        for name, path in sorted((own | others).items()):
            entry = zipfile.ZipInfo(name.as_posix(), _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def modules() -> bytes:
    """Return a tar file of modules/, as DKMS needs it below /usr/src."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in _files(_MODULES, MODULES):
            content = path.read_bytes()
            entry = tarfile.TarInfo(path.relative_to(MODULES).as_posix())
            entry.size, entry.mode, entry.mtime = len(content), 0o644, _EPOCH_S
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()
