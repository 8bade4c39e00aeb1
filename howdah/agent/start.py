# SPDX-License-Identifier: Apache-2.0
"""``python3 start.py``: the agent, with its modules taken from one file beside ``howdah/`` (howdah/build/bundle.py).

A module that is not in that file is found as always. Nothing but what Python has loaded already may be imported here.
"""

from __future__ import annotations

import marshal
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourcelessFileLoader, spec_from_file_location

TYPE_CHECKING = False  # without typing
if TYPE_CHECKING:
    from types import CodeType

BUNDLE = "modules.bundle"
_PLACE_BYTES = 8
_LARGEST_INDEX = 1 << 20


class Bundle:
    """A finder for ``sys.meta_path``."""

    def __init__(self, file: str) -> None:
        self._file = posix.open(file, posix.O_RDONLY | posix.O_CLOEXEC)
        place = int.from_bytes(posix.pread(self._file, _PLACE_BYTES, 0), "little")
        self._index = marshal.loads(posix.pread(self._file, _LARGEST_INDEX, place))

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        found = self._index.get(name)
        if found is None:
            return None
        source, begin, count = found
        return spec_from_file_location(name, source, loader=_Loader(name, source, (self._file, count, begin)))

    def invalidate_caches(self) -> None:
        """The file does not change."""


class _Loader(SourcelessFileLoader):
    """``piece`` is what pread(2) takes."""

    def __init__(self, name: str, source: str, piece: tuple[int, int, int]) -> None:
        super().__init__(name, source)
        self._piece = piece

    def get_code(self, _fullname: str) -> CodeType:
        code: CodeType = marshal.loads(posix.pread(*self._piece))
        return code


if __name__ == "__main__":
    sys.meta_path.insert(0, Bundle(f"{sys.path[0]}/../../{BUNDLE}"))
    del sys.path[0]
    from howdah.agent.__main__ import main

    sys.exit(main())
