# SPDX-License-Identifier: Apache-2.0
"""A user-space TCP stack, described by a YAML file that names its program and how to build it (docs/stacks.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from howdah.errors import ProfileError, nearest
from howdah.place import STACKS
from howdah.profile.field import Section, Text, fixed
from howdah.profile.report import profile_error
from howdah.profile.source import Document, Path_, read_document
from howdah.profile.written import written_path
from howdah.receiver import LINUX, RECEIVERS

_FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$")]


class StackSection(Section):
    """The contents of a stack's ``NAME.yaml``."""

    summary: Text = fixed(description="a short description")
    directory: Text = fixed(description="its sources, relative to this file")
    needs: dict[_FileName, Text] = fixed(
        default_factory=dict,
        description="programs that build it, with the argument that prints each one's version; if one is missing, "
        "the stack is unsupported",
    )
    build: list[Annotated[list[Text], Field(min_length=1)]] = fixed(
        min_length=1,
        max_length=16,
        description="commands that build it, each a list of words; {out} is the directory of the program, {work} "
        "one for intermediate files",
    )
    environment: dict[Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")], Text] = fixed(
        default_factory=dict, description="environment variables of these commands"
    )
    libraries: list[_FileName] = fixed(
        default_factory=list,
        max_length=16,
        description="shared libraries to copy beside the program, by the name under which gcc finds them",
    )
    program: _FileName = fixed(description="the file in {out} to start")
    algorithms: dict[Text, Text] = fixed(
        default_factory=dict,
        description="its congestion controls: the name in profiles, and the program's name; none: it only receives",
    )
    hint: Text = fixed("", description="what to do if it does not build")


@dataclass(frozen=True)
class Stack:
    """A stack: its YAML ``file``, and the ``directory`` of its sources."""

    name: str
    file: Path
    directory: Path
    section: StackSection


def shipped_stacks() -> list[str]:
    """Names of the stacks that howdah ships."""
    return sorted(file.stem for file in STACKS.glob("*.yaml"))


def is_other_stack(name: str | None) -> bool:
    """Whether the name is a stack other than the kernel's."""
    return name is not None and name != LINUX


def stack_file(name: str, directory: Path, where: str) -> Path:
    """The YAML file of a stack that a profile in ``directory`` names: a shipped one, or a path that contains a /.

    Raises ProfileError.
    """
    if "/" in name:
        file = written_path(directory, name, where).resolve()
        if not file.is_file():
            raise ProfileError(f"there is no file {file}", where=where, hint="a stack is described by a YAML file")
        return file
    known = shipped_stacks()
    if name in known:
        return STACKS / f"{name}.yaml"
    forms = f"{', '.join([LINUX, *known])}, or the path of a YAML file with a / in it (./mine.yaml)"
    close = nearest(name, [LINUX, *known])
    if close is None and (behaviour := nearest(name, RECEIVERS)) == name:
        raise ProfileError(
            f"{behaviour} is a behaviour of receivers, not a stack", where=where, hint=f"stacks: {forms}"
        )
    hint = f"did you mean {close}? stacks: {forms}" if close else f"stacks: {forms}"
    raise ProfileError(f"there is no stack {name!r}", where=where, hint=hint)


def read_stack(file: Path) -> Stack:
    """Read a stack's YAML file. Raises ProfileError, with file and line, if it does not describe a stack."""
    document = read_document(file, "stack")
    try:
        section = StackSection.model_validate(document.data)
    except ValidationError as error:
        raise profile_error(error, document, {}, StackSection) from None
    if file.stem in RECEIVERS:
        raise ProfileError(f"{file.stem} is the name of a receiver behaviour", where=str(file), hint="rename the file")
    directory = _directory(file, section, document)
    return Stack(file.stem, file, directory, section)


def _directory(file: Path, section: StackSection, document: Document) -> Path:
    place: Path_ = ("directory",)
    directory = written_path(file.parent, section.directory, document.place(place)).resolve()
    if not directory.is_dir():
        raise ProfileError(f"there is no directory {directory}", where=document.place(place))
    return directory
