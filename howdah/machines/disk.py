# SPDX-License-Identifier: Apache-2.0
"""Disks of virtual machines: overlays, so that an image is never written to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from howdah.distribution import installing
from howdah.errors import EngineUnavailableError, HowdahError

_BOOT_MARK = slice(510, 512)
_MARKED = b"\x55\xaa"  # the last two bytes of a sector that a PC boots from; a GPT has it as well


def check_image(image: Path, where: str) -> str:
    """The format of a disk image of the user's, as QEMU names it. Raises HowdahError for a file that is none."""
    with image.open("rb") as file:
        start = file.read(512)
    if not start:
        raise HowdahError("the image is empty", where=where)
    answer = _qemu_img("info", "--output=json", str(image))
    if answer.returncode:
        raise HowdahError(f"this is not a disk image: {_words(answer)}", where=where)
    found = str(json.loads(answer.stdout)["format"])
    # Anything at all counts as a raw disk; one that boots has a mark.
    if found == "raw" and start[_BOOT_MARK] != _MARKED:
        raise HowdahError(
            f"{image.name} is not a disk image: QEMU does not know its format, and it has no boot sector",
            where=where,
            hint="Expected qcow2, vmdk, vdi, vhdx, or a raw disk with a boot sector. Is it packed? Unpack it first.",
        )
    return found


def make_overlay(overlay: Path, base: Path, base_format: str) -> None:
    """A disk that holds only what changes. Raises HowdahError with QEMU's words."""
    overlay.unlink(missing_ok=True)
    answer = _qemu_img(
        *("create", "-q", "-f", "qcow2", "-F", base_format, "-b", str(base.resolve()), str(overlay)),
    )
    if answer.returncode:
        raise HowdahError(f"the disk cannot be made: {_words(answer)}", where=str(overlay))


def _words(answer: subprocess.CompletedProcess[str]) -> str:
    return (answer.stderr.strip().splitlines() or ["qemu-img said nothing"])[-1]


def _qemu_img(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["qemu-img", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise EngineUnavailableError("the program qemu-img is missing", hint=installing("qemu-utils")) from None
