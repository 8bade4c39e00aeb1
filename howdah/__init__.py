# SPDX-License-Identifier: Apache-2.0
"""howdah measures how TCP starts up on long fat paths, on real kernels in virtual time."""

import importlib
import os
import sys

__version__ = "0.2.0"

# A wheel holds the other packages inside this one, so that site-packages gets one name. See howdah/place.py.
_shipped = f"{__path__[0]}/_shipped"
if os.path.isdir(_shipped):  # noqa: PTH112 - pathlib takes longer to load than everything else before the command
    sys.path.insert(0, _shipped)


def __getattr__(name: str) -> object:
    """Import a public name of the library (listed in ``__init__.pyi``) on first use, so that guests never load it.

    The module is named by a string: a static analysis of imports then does not count the library as a dependency of
    every module that imports from this package.
    """
    if name in ("load", "run", "Data", "Recording", "Rows", "HowdahError"):
        return getattr(importlib.import_module("howdah.errors" if name == "HowdahError" else "howdah.library"), name)
    raise AttributeError(f"module 'howdah' has no attribute {name!r}")
