# SPDX-License-Identifier: Apache-2.0
"""What tests of virtual machines need of this machine, and machine sets that are up."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from howdah.build.accelerator import QEMU
from howdah.command.main import main

_PLACES = "/usr/sbin:/usr/bin:/sbin:/bin"
_OF_A_SET = (QEMU, "qemu-img", "mmdebstrap", "ssh", "mke2fs")


def _require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program, path=_PLACES) is None:
            pytest.skip(f"{program} is not on this machine (setup/packages-test.txt)")


@pytest.fixture(scope="session")
def qemu() -> None:
    """A test that uses it is skipped where there is no QEMU."""
    _require(QEMU)


@contextmanager
def machines_up(place: Path, text: str) -> Iterator[Path]:
    """The machines file, in ``place``, of machines that are up; they are taken down whatever the tests find."""
    _require(*_OF_A_SET)
    file = place / "machines.yaml"
    file.write_text(text)
    try:
        assert main(["machines", "up", str(file), "--machine-sets", str(place)]) == 0
        yield file
    finally:
        main(["machines", "down", str(file), "--machine-sets", str(place)])
