# SPDX-License-Identifier: Apache-2.0
"""howdah measures how TCP starts up on long fat paths, on real kernels in virtual time."""

import importlib
import sys
from pathlib import Path

__version__ = "0.2.0"

# In a wheel the other packages lie inside this one, so that site-packages gets one name. See howdah/place.py.
_shipped = Path(__path__[0], "_shipped")
if _shipped.is_dir():
    sys.path.insert(0, str(_shipped))


def __getattr__(name: str) -> object:
    """What a program uses of howdah (``__init__.pyi``), imported when it is asked for: the guest has none of it.

    The name is a text, so that the library is not a part of whatever imports another module of this package.
    """
    if name in ("load", "run", "Data", "Recording", "Rows", "HowdahError"):
        return getattr(importlib.import_module("howdah.errors" if name == "HowdahError" else "howdah.library"), name)
    raise AttributeError(f"module 'howdah' has no attribute {name!r}")
