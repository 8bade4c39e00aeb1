# SPDX-License-Identifier: Apache-2.0
"""``ccache`` around the compiler of a Debian kernel, where it is installed.

An entry of the cache keeps no objects, so a kernel with patches (``debian-6.12+of-2007``) compiles again what the
kernel without them has compiled: all but the files that the patches reach. A kernel tree keeps its objects in its
build tree and needs none of this.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from howdah.build.cache import Cache

KIND = "compiled"
_PROGRAM = "ccache"
_MOST_BYTES = 2**30  # the objects of some ten kernels, compressed


@dataclass(frozen=True)
class CompilerCache:
    """``arguments`` are for make, ``environment`` is for what make starts."""

    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def compiler_cache(cache: Cache, source: Path) -> CompilerCache:
    """For a build of ``source`` with its output beside it. It does nothing where ccache is not installed.

    Objects, and so the image, are those of gcc alone.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        return CompilerCache()
    return CompilerCache(
        # ccache makes paths below the entry relative, so that Kbuild's own -fmacro-prefix-map no longer finds the
        # source in them: without this, __FILE__ and with it the image would be others than without ccache.
        (f"CC={_PROGRAM} gcc -fmacro-prefix-map=../{source.name}/=",),
        {
            "CCACHE_DIR": str(cache.root / KIND),
            # The entry has another name in every build.
            "CCACHE_BASEDIR": str(source.parent),
            "CCACHE_NOHASHDIR": "1",
            # What the compiler says it has read decides: no file is preprocessed once more to be looked for.
            "CCACHE_DEPEND": "1",
            "CCACHE_COMPILERCHECK": "content",
            "CCACHE_MAXSIZE": str(_MOST_BYTES),
            # A person's own configuration could store elsewhere, or share with the network.
            "CCACHE_CONFIGPATH": "/dev/null",
        },
    )
