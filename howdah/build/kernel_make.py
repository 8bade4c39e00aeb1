# SPDX-License-Identifier: Apache-2.0
"""Settings for building kernels and modules: ``make``, the options of the user-mode kernel, and ``ccache``.

``make`` runs the same way in every user's environment.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from howdah.build.cache import Cache

# The version string is mixed into the guest's random numbers, and the image's hash is part of every run's key: neither
# may depend on when and by whom the kernel was built.
FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "howdah",
    "KBUILD_BUILD_HOST": "howdah",
    "KBUILD_BUILD_VERSION": "1",
}
# Variables that make and compilers see. Kbuild reads many others (KCFLAGS, LOCALVERSION, KCONFIG_CONFIG,
# CROSS_COMPILE …), which no key covers.
INHERITED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD")
# The kernel's makefiles select the large code model, in which every call uses a 64-bit constant. The image is linked at
# 0x60000000, where the small model works and is 15 % faster. Modules live beyond 2 GiB and keep the large one.
IMAGE_FLAGS = "KCFLAGS=-mcmodel=small"


def make_command(source_dir: Path, build_dir: Path, *arguments: str) -> list[str]:
    """Return the ``make`` command for the user-mode architecture, with output apart from the source."""
    return ["make", "-C", str(source_dir), f"O={build_dir}", "ARCH=um", *arguments]


FRAGMENT = Path(__file__).with_name("kernel.config")
_SECTION = re.compile(r"# \[(?P<name>required|optional|modules)(?: (?P<side>before|from) (?P<release>\d+\.\d+))?\]")


@dataclass(frozen=True)
class WantedOptions:
    """Option names without ``CONFIG_``; ``modules`` are wanted as ``m``, the others as ``y``."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    modules: tuple[str, ...] = ()

    def fragment(self) -> str:
        """Return lines for KCONFIG_ALLCONFIG."""
        built_in = "".join(f"CONFIG_{option}=y\n" for option in self.required + self.optional)
        return built_in + "".join(f"CONFIG_{option}=m\n" for option in self.modules)

    def ingredients(self) -> list[str]:
        """Return all options, as part of a kernel's key."""
        return ["required", *self.required, "optional", *self.optional, "modules", *self.modules]


def read_wanted(release: tuple[int, ...] = (), fragment: Path | None = None) -> WantedOptions:
    """Return the options wanted for a kernel of this release, such as (6, 12); an empty one counts as newer than all.

    kernel.config explains its sections. Raises ValueError that names an unreadable line.
    """
    file = fragment or FRAGMENT
    sections: dict[str, list[str]] = {"required": [], "optional": [], "modules": []}
    section, applies = "required", True
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if line.startswith("# ["):
            match = _SECTION.fullmatch(line)
            if not match:
                raise ValueError(f"{file}:{number}: no section {line[2:]!r}")
            section = match["name"]
            applies = match["release"] is None or _older(release, match["release"]) == (match["side"] == "before")
        elif line.startswith("CONFIG_") and line.endswith(value := "=m" if section == "modules" else "=y"):
            if applies:
                sections[section].append(line.removeprefix("CONFIG_").removesuffix(value))
        elif line and not line.startswith("#"):
            raise ValueError(f"{file}:{number}: neither a comment nor CONFIG_…=y, or =m of a module")
    return WantedOptions(*(tuple(sections[name]) for name in ("required", "optional", "modules")))


def _older(release: tuple[int, ...], than: str) -> bool:
    return () < release < tuple(map(int, than.split(".")))


def enabled_options(configuration: Path) -> set[str]:
    """Return the names of the options that a .config sets to ``y`` or ``m``."""
    found = set()
    for line in configuration.read_text(encoding="utf-8").splitlines():
        name, separator, value = line.partition("=")
        if separator and value in ("y", "m"):
            found.add(name.removeprefix("CONFIG_"))
    return found


KIND = "compiled"
_PROGRAM = "ccache"
_MOST_BYTES = 2**30  # room for the compressed objects of some ten kernels


@dataclass(frozen=True)
class CompilerCache:
    """Settings for ccache: ``arguments`` for make, and ``environment`` for make's children."""

    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def compiler_cache(cache: Cache, source: Path) -> CompilerCache:
    """Return the ccache settings for a build of ``source`` with its output beside it; none if ccache is not installed.

    An entry of howdah's cache keeps no objects. Without ccache, a kernel with patches (``debian-6.12+of-2007``) would
    compile everything again, not only the files that the patches affect. A kernel tree keeps its objects in its build
    tree and needs no ccache.

    Objects, and so the image, are identical to those from gcc alone.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        return CompilerCache()
    return CompilerCache(
        # ccache makes paths below the entry relative, so that Kbuild's own -fmacro-prefix-map no longer matches
        # them: without this option, __FILE__ and with it the image would differ from those without ccache.
        (f"CC={_PROGRAM} gcc -fmacro-prefix-map=../{source.name}/=",),
        {
            "CCACHE_DIR": str(cache.root / KIND),
            # The entry's directory has another name in every build.
            "CCACHE_BASEDIR": str(source.parent),
            "CCACHE_NOHASHDIR": "1",
            # Look objects up by the files that the compiler reported as read, without another preprocessing.
            "CCACHE_DEPEND": "1",
            "CCACHE_COMPILERCHECK": "content",
            "CCACHE_MAXSIZE": str(_MOST_BYTES),
            # A user's configuration could store objects elsewhere, or share them over the network.
            "CCACHE_CONFIGPATH": "/dev/null",
        },
    )
