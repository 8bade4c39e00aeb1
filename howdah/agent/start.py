# SPDX-License-Identifier: Apache-2.0
"""``python3 start.py``: start the agent with its modules taken from one file beside ``howdah/``
(howdah/build/bundle.py).

The modules that every run needs are executed in the order in which Python would finish importing them. Each module then
finds its imports loaded, and Python neither searches nor locks: that would read the clock three times a module, and
each reading is a system call in a user-mode kernel. Modules that are not in the bundle are imported as usual. This file
may import only what Python has already loaded.
"""

from __future__ import annotations

import marshal
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourcelessFileLoader, spec_from_file_location

TYPE_CHECKING = False  # type checkers treat this name like typing's, which is not imported
if TYPE_CHECKING:
    from types import CodeType, ModuleType
else:
    ModuleType = type(sys)

BUNDLE = "modules.bundle"
# Modules of the standard library that every run imports and hardly any run uses.
LATER = ("inspect", "subprocess")
_PLACE_BYTES = 8
_LARGEST_INDEX = 1 << 20
_PACKAGE = "/__init__.py"


class Later(ModuleType):
    """A placeholder for a module of ``LATER``, which loads the module when one of its attributes is used.

    A dataclass takes its annotations from ``inspect``, and nothing else if it has a docstring.
    """

    @staticmethod
    def get_annotations(kind: type) -> dict[str, object]:
        return dict(kind.__dict__.get("__annotations__", {}))  # noqa: RUF063 - this is it

    def __getattr__(self, name: str) -> object:
        own = self.__name__
        if sys.modules.get(own) is self:
            del sys.modules[own]
        return getattr(__import__(own), name)


def leave_for_later() -> None:
    """Put placeholders in ``sys.modules`` for the modules of ``LATER`` that are not loaded yet."""
    for name in LATER:
        sys.modules.setdefault(name, Later(name))


class Bundle:
    """A finder for ``sys.meta_path`` that reads modules from the bundle."""

    def __init__(self, file: str) -> None:
        self._file = posix.open(file, posix.O_RDONLY | posix.O_CLOEXEC)
        place = int.from_bytes(posix.pread(self._file, _PLACE_BYTES, 0), "little")
        self._always, self._index = marshal.loads(posix.pread(self._file, _LARGEST_INDEX, place))

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if name not in self._index:
            return None
        source, begin, count = self._index[name]
        return spec_from_file_location(name, source, loader=_Loader(name, source, (self._file, count, begin)))

    def load_always(self) -> None:
        """Execute the modules that every run needs. Skip a submodule until its package is loaded: the package imports
        it."""
        for name in self._always:
            package, _, own = name.rpartition(".")
            if name in sys.modules or (package and package not in sys.modules):
                continue
            source, begin, count = self._index[name]
            loader = _Loader(name, source, (self._file, count, begin))
            module = sys.modules[name] = _module(name, source, loader)
            exec(loader.get_code(name), module.__dict__)
            if package:
                setattr(sys.modules[package], own, module)


class _Loader(SourcelessFileLoader):
    """A loader of one module; ``piece`` holds the arguments of pread(2): descriptor, byte count, offset."""

    def __init__(self, name: str, source: str, piece: tuple[int, int, int]) -> None:
        super().__init__(name, source)
        self._piece = piece

    def get_code(self, _fullname: str) -> CodeType:
        code: CodeType = marshal.loads(posix.pread(*self._piece))
        return code


def _module(name: str, source: str, loader: _Loader) -> ModuleType:
    """Return an empty module with the attributes that Python's import system sets."""
    module = ModuleType(name)
    module.__file__, module.__loader__ = source, loader
    module.__spec__ = ModuleSpec(name, loader, origin=source, is_package=source.endswith(_PACKAGE))
    module.__package__ = module.__spec__.parent
    module.__spec__.has_location = True
    if source.endswith(_PACKAGE):
        module.__path__ = module.__spec__.submodule_search_locations = [source.removesuffix(_PACKAGE)]
    return module


if __name__ == "__main__":
    bundle = Bundle(f"{sys.path[0]}/../../{BUNDLE}")
    sys.meta_path.insert(0, bundle)
    del sys.path[0]
    leave_for_later()
    bundle.load_always()
    from howdah.agent.__main__ import main

    sys.exit(main())
