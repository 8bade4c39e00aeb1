# SPDX-License-Identifier: Apache-2.0
"""A sequence whose members are made when they are asked for, and not kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

Member = TypeVar("Member", covariant=True)


class Computed(Sequence[Member]):
    """Has ``at`` and ``__len__``; a slice is a list."""

    @abstractmethod
    def at(self, index: int) -> Member:
        """The member at a place from 0 to one less than the length."""

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> list[Member]: ...
    def __getitem__(self, index: int | slice) -> Member | list[Member]:
        if isinstance(index, slice):
            return [self.at(each) for each in range(len(self))[index]]
        return self.at(range(len(self))[index])
