# SPDX-License-Identifier: Apache-2.0
"""An entry of ``modules:``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from howdah.profile.field import ShortSection, Text, fixed


class ModuleSection(ShortSection):
    """A kernel module. Its file alone, such as `modules: [./tcp_mine.c]`, needs no mapping."""

    short: ClassVar[str] = "file"

    file: Text = fixed(
        description="a .c or .ko file, a directory with a Kbuild or Makefile, or BPF (.bpf.c); relative to the profile"
    )
    include: list[Text] = fixed(
        default_factory=list,
        max_length=16,
        description="directories whose headers it includes, relative to the profile",
    )
    define: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")], Text] = fixed(
        default_factory=dict, description="macros of its preprocessor"
    )
    sources: list[Text] = fixed(
        default_factory=list, max_length=64, description="further .c files of the module, relative to the profile"
    )
