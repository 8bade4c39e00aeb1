# SPDX-License-Identifier: Apache-2.0
"""Lays out the sources of a user's module, with all included files, as a directory for Kbuild.

Headers keep their locations relative to the files that include them, also above (``#include "../mine.h"``); directories
above are renamed, because make cannot handle a name with a space.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from howdah.errors import HowdahError
from howdah.place import MODULES
from howdah.plan.plan import Plan
from howdah.record.kernel_log import OWN_PREFIX

_MADE = (".o", ".ko", ".mod", ".cmd", ".a", ".order", ".symvers")
_MADE_NAMES = ("Module.symvers", "modules.order")
_MOST_BYTES = 64 * 2**20
PROJECT_KBUILD = "howdah.kbuild"
_REGISTERS = b"tcp_register_congestion_control"
_REPLACE = tuple(Path(__file__).with_name(name) for name in ("replace.c", "replace.h"))
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]+\"([^\"\n]+)\"", re.MULTILINE)
_MOST_HEADERS = 4000
# A real kernel has no floating point: with these flags such code does not link. A user-mode kernel would accept it.
_NO_FLOATING_POINT = "-mno-sse -mno-mmx -mno-80387 -msoft-float"


@dataclass(frozen=True)
class Extras:
    """A profile's additions to a module's file: directories of headers, macros, further sources."""

    include: Sequence[Path] = ()
    define: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[Path] = ()

    def flags(self, included: Sequence[str]) -> str:
        """Return flags for Kbuild; ``included`` are the locations of the header directories in the build."""
        macros = [f"'-D{name}={value}'" if value else f"-D{name}" for name, value in self.define.items()]
        return " ".join([_NO_FLOATING_POINT, *(f"-I{place}" for place in included), *macros])


NO_EXTRAS = Extras()


def extras_of(plan: Plan) -> dict[str, Extras]:
    """Return a plan's extras by the path of the module's file."""
    return {
        path: Extras(tuple(map(Path, build.include)), build.define, tuple(map(Path, build.sources)))
        for path, build in plan.module_builds.items()
    }


@dataclass(frozen=True)
class Sources:
    """The layout of a build. ``files`` maps names in the build to files; ``kbuild`` is written into it; ``flags`` are
    appended to the flags of the module's own makefile, which is in ``place``. ``here`` leads from the build's root to
    the user's file."""

    files: dict[Path, Path]
    kbuild: str | None = None
    flags: str = ""
    place: str = "."
    here: str = "."


def directory_sources(source: Path, extras: Extras) -> Sources:
    """Lay out all files of a directory: a rule of its Makefile may need any. Includes from above set its depth."""
    mine = [path for path in sorted(source.rglob("*")) if _may_be_needed(path.relative_to(source), path)]
    if (size := sum(path.stat().st_size for path in mine)) > _MOST_BYTES:
        what = f"the directory has {size // 2**20} MiB, more than the {_MOST_BYTES // 2**20} of a module's sources"
        raise HowdahError(what, where=str(source), hint="Name a directory with the module alone.")
    above = list(_included([each for each in mine if each.suffix in (".c", ".h")]))
    names = {path: os.path.relpath(path, _absolute(source)) for path in [*map(_absolute, mine), *above]}
    files, place = _below(names)
    further, places = included_directories(extras)
    files |= {Path(place) / name: path for name, path in further.items()}
    return Sources(files, None, extras.flags([f"$(src)/{each}" for each in places]), place)


def _may_be_needed(name: Path, path: Path) -> bool:
    return (
        path.is_file()
        and not any(part.startswith(".") for part in name.parts)
        and path.suffix not in _MADE
        and not path.name.endswith(".mod.c")
        and path.name not in _MADE_NAMES
    )


def file_sources(source: Path, extras: Extras) -> Sources:
    """Lay out one .c file and what belongs to it.

    A file that itself registers a congestion control becomes a module with another name, since the kernel loads no
    tcp_cubic beside a built-in one. It is linked with code that replaces the built-in one.
    """
    beside = sorted(source.parent.glob("*.h"))
    code = [source, *extras.sources]
    here = _absolute(source).parent
    every = [*map(_absolute, [*code, *beside]), *_included(code)]
    files, place = _below({path: os.path.relpath(path, here) for path in every})
    places = {path: name for name, path in files.items()}
    own = [places[_absolute(path)].with_suffix(".o") for path in code]
    name = source.stem
    replaces = any(_REGISTERS in path.read_bytes() for path in files.values())
    if replaces:
        name = f"{OWN_PREFIX}{name}"
        files |= {Path("replace") / path.name: path for path in _REPLACE}
    if replaces or len(own) > 1 or own[0].parent != Path():
        parts = " ".join(map(str, [*own, *(["replace/replace.o"] if replaces else [])]))
        name = name if replaces or own != [Path(f"{name}.o")] else f"{OWN_PREFIX}{name}"
        objects = f"obj-m := {name}.o\n{name}-y := {parts}\n"
    else:
        objects = f"obj-m := {name}.o\n"
    if replaces:
        objects += "".join(f"CFLAGS_{each} := -include $(src)/replace/replace.h\n" for each in own)
    files |= shared_files()
    include = f"include $(src)/{PROJECT_KBUILD}\n" if Path(PROJECT_KBUILD) in files else ""
    further, places_included = included_directories(extras)
    files |= further
    flags = extras.flags([f"$(src)/{place}" for place in places_included])
    return Sources(files, f"{include}{objects}ccflags-y += -I$(src) -I$(src)/include {flags}\n", here=place)


def shared_files() -> dict[Path, Path]:
    """Return the project's headers and flags to copy: a compiler flag cannot name a checkout with a space."""
    shared = sorted((MODULES / "include").rglob("*.h"))
    files = {path.relative_to(MODULES): path for path in shared}
    kbuild = MODULES / "Kbuild"
    return files | ({Path(PROJECT_KBUILD): kbuild} if kbuild.is_file() else {})


def included_directories(extras: Extras) -> tuple[dict[Path, Path], list[str]]:
    """Return the headers in the directories of ``include``, and the locations of these directories in the build."""
    files: dict[Path, Path] = {}
    places = []
    for number, directory in enumerate(extras.include):
        place = f"howdah-include-{number}"
        headers = sorted(path for path in directory.rglob("*.h") if path.is_file())
        if len(headers) > _MOST_HEADERS:
            what = f"a directory of include has {len(headers)} headers, more than {_MOST_HEADERS}"
            raise HowdahError(what, where=str(directory), hint="Name the directory that the module's headers are in.")
        files |= {Path(place) / path.relative_to(directory): path for path in headers}
        places.append(place)
    return files, places


def _included(code: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that the code includes by relative path, transitively."""
    seen = {_absolute(path) for path in code}
    waiting = [_absolute(path) for path in code]
    while waiting:
        file = waiting.pop()
        for name in _INCLUDE.findall(file.read_bytes()):
            found = _absolute(file.parent / os.fsdecode(name))
            if found not in seen and found.is_file():
                seen.add(found)
                waiting.append(found)
                yield found


def _below(names: Mapping[Path, str]) -> tuple[dict[Path, Path], str]:
    """Return the files' names in the build, and the location of their directory: as deep as names above it require."""
    above = max((Path(name).parts.count(os.pardir) for name in names.values()), default=0)
    place = Path(*["d"] * above)
    return {Path(os.path.normpath(place / name)): path for path, name in names.items()}, str(place)


def _absolute(path: Path) -> Path:
    """Return an absolute path without dots; links stay, because the compiler also resolves names through them."""
    return Path(os.path.abspath(path))  # noqa: PTH100
