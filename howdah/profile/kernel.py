# SPDX-License-Identifier: Apache-2.0
"""The name of a kernel: one of Debian's, or the path of a tree or an image."""

from __future__ import annotations

import re
from pathlib import Path

from howdah.default import DEFAULT_KERNEL, KERNEL_FORM
from howdah.errors import ProfileError, nearest
from howdah.profile.written import is_there

# What a misspelt name is compared with: Debian's long-term kernels of these years, and the newest.
_USUAL = (DEFAULT_KERNEL, "debian-newest", "debian-5.10", "debian-6.1")


def check_kernel_name(name: str, where: str) -> None:
    """Raises ProfileError for what is neither a version nor the path of something; the nearest name is in it."""
    if re.fullmatch(KERNEL_FORM, name, re.ASCII) or "/" in name or is_there(Path(name)):
        return
    close = nearest(name, _USUAL)
    forms = "a kernel is debian-VERSION (debian-6.12), debian-newest, or a path with a / in it (./linux)"
    hint = f"did you mean {close}? {forms}" if close else forms
    raise ProfileError(f"there is no kernel {name!r}", where=where, hint=hint)
