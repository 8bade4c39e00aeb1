# SPDX-License-Identifier: Apache-2.0
"""What a person calls a profile."""

from __future__ import annotations

from pathlib import Path

from howdah.errors import ProfileError, nearest
from howdah.place import PROFILES
from howdah.work.catalogue import shipped_profiles


def find_profile(name: str) -> Path:
    """A file as given, or a shipped profile by its name, with or without the directory below profiles/.

    Raises HowdahError with the nearest name where there is neither.
    """
    given = Path(name)
    if given.exists() and not given.is_dir():
        return given
    shipped = shipped_profiles()
    if (wanted := PROFILES / f"{name}.yaml") in shipped.values():
        return wanted
    if name in shipped:
        return shipped[name]
    if given.suffix in (".yaml", ".yml"):
        if given.stem in shipped:
            raise ProfileError(f"there is no file {name}", hint=f"The shipped profile is called {given.stem}.")
        beside = {file.stem: str(given.with_name(file.name)) for file in sorted(given.parent.glob("*.y*ml"))}
        # Without the ending, which would make every two names alike.
        # Who gives a file's path means a shipped profile only where the names are much alike.
        close = nearest(given.stem, beside) or nearest(given.stem, shipped, 0.7)
        if given.is_dir() or not close:
            return given
        raise ProfileError(f"there is no file {name}", hint=f"Did you mean {beside.get(close, close)}?")
    below = {str(file.relative_to(PROFILES).with_suffix("")) for file in shipped.values()}
    if "/" in name and not (close := nearest(name, below)):
        return given
    close = nearest(name, below if "/" in name else shipped)
    names = ", ".join(file.stem for file in sorted(PROFILES.glob("*.yaml")))
    hint = f"Shipped profiles: {names}; 'howdah list profiles' has them all. Or give the path of a file."
    raise ProfileError(f"there is no profile '{name}'", hint=f"Did you mean {close}? {hint}" if close else hint)
