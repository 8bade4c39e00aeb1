# SPDX-License-Identifier: Apache-2.0
"""The base class of ``--json`` objects. One class defines, makes and documents an object."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from howdah.record.model import FilePart


class CommandAnswer(FilePart):
    """An object with a shape: ``class Sign(CommandAnswer, shape="sign")`` is printed with the shape ``sign/1``."""

    shape_name: ClassVar[str] = ""
    shape_version: ClassVar[int] = 1

    def __init_subclass__(cls, *, shape: str = "", version: int = 1, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        cls.shape_name, cls.shape_version = shape, version

    @classmethod
    def shape(cls) -> str:
        return f"{cls.shape_name}/{cls.shape_version}"

    @classmethod
    def over(cls, file: FilePart, **own: Any) -> Self:
        """Return an object with all fields of a file or result, and fields of the command's own."""
        there = {name: getattr(file, name) for name in file.model_fields_set}
        return cls.model_construct({*own, *there}, **own, **there)

    def plain(self) -> dict[str, Any]:
        """Return the fields, the command's own first."""
        found = super().plain()
        own = [name for name in type(self).__annotations__ if name in found]
        return {**{name: found[name] for name in own}, **found}
