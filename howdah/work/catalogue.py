# SPDX-License-Identifier: Apache-2.0
"""The shipped profiles in groups, each with its number of runs and their expected cost.

Expanding every sweep takes many seconds, so ``profiles/index.json`` caches the result with a digest of each file. A
profile that has changed since is expanded again. ``python -m howdah.work.catalogue [--check]`` writes the index.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from howdah.errors import ProfileError, nearest
from howdah.generated import compact_json, keep_current
from howdah.place import PROFILES
from howdah.plan.compile import compile_plan
from howdah.profile import Profile, load
from howdah.record.provenance import sha256_text
from howdah.work.cost import expected_core_s

INDEX = PROFILES / "index.json"
# Title, members (a profile, or a prefix that ends with / or -), and purpose. The first group that matches is used.
GROUPS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "start here",
        ("quick", "geo-144mbit-600ms", "long-fat-400mbit-240ms"),
        "a small, a satellite and a long fat path",
    ),
    ("paths", ("paths/",), "ready-made; take one with --like NAME, or path: {like: paths/NAME}"),
    ("families", ("family-", "search-authors"), "algorithms of one kind side by side"),
    (
        "receivers and traffic",
        ("receivers", "receivers-", "senders-", "flent-", "quic"),
        "what acknowledges, and what sends",
    ),
    (
        "validation and machines",
        ("validate", "machines-", "cpu/", "processor"),
        "engines against each other, several machines, processor time",
    ),
    ("searches", ("search-",), "where howdah search looks for the smallest path on which a claim fails"),
    ("atlas", ("atlas/",), "published experiments; 'howdah atlas' runs and judges them"),
)
OTHER = "other"


@dataclass(frozen=True)
class ShippedProfile:
    """A shipped profile. ``file`` is below profiles/; ``core_s`` is the time on one core, rounded to two digits."""

    profile: str
    file: str
    runs: int
    core_s: float
    description: str

    @property
    def group(self) -> str:
        name = self.file.removesuffix(".yaml")
        for title, members, _ in GROUPS:
            if any(name == member or (member[-1] in "-/" and name.startswith(member)) for member in members):
                return title
        return OTHER


def shipped_profiles() -> dict[str, Path]:
    """Map names to shipped profiles; ``hystart-fig1`` is the name of ``profiles/atlas/hystart-fig1.yaml``."""
    # suites/ has lists of profiles.
    return {file.stem: file for file in sorted(PROFILES.rglob("*.yaml")) if file.parent.name != "suites"}


def expected_s(core_s: float) -> str:
    """Return core seconds in words: ``2 min``."""
    for unit, length, limit in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if core_s / length < limit:
            return f"{max(round(core_s / length), 1)} {unit}"
    return f"{round(core_s / 86400)} d"


def profile_core_s(profile: Profile) -> float:
    """Return the expected cost of all runs of a profile. One repetition of each point is planned; the others cost the
    same."""
    cells = profile.cells()
    repetitions = Counter(cell.run.rpartition("-r")[0] for cell in cells)
    first = [cell for cell in cells if cell.repetition == 0]
    core_s = sum(expected_core_s(compile_plan(cell)) * repetitions[cell.run.rpartition("-r")[0]] for cell in first)
    return float(f"{core_s:.2g}")


def examine(name: str, file: Path) -> ShippedProfile:
    """Read a profile and estimate the cost of its runs."""
    profile = load(file)
    place, words = str(file.relative_to(PROFILES)), " ".join(profile.description.split())
    return ShippedProfile(name, place, len(profile.cells()), profile_core_s(profile), words)


def entries() -> list[ShippedProfile]:
    """Return every shipped profile, in the order of the groups."""
    kept = _kept()
    found = []
    for name, file in shipped_profiles().items():
        digest, entry = kept.get(name, ("", None))
        is_kept = entry is not None and digest == sha256_text(file.read_text(encoding="utf-8"))
        found.append(entry if entry is not None and is_kept else examine(name, file))
    return sorted(found, key=_order)


def _order(entry: ShippedProfile) -> tuple[int, int, str]:
    """Sort by group; members that a group names come first, in the group's order."""
    for number, (title, members, _) in enumerate(GROUPS):
        if entry.group == title:
            return number, members.index(entry.profile) if entry.profile in members else len(members), entry.profile
    return len(GROUPS), 0, entry.profile


def _kept() -> dict[str, tuple[str, ShippedProfile]]:
    """Return the entries of the index by name, each with the digest of its profile."""
    try:
        rows = json.loads(INDEX.read_text(encoding="utf-8"))["profiles"]
        return {row["profile"]: (row.pop("sha256"), ShippedProfile(**row)) for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def index() -> str:
    """Return the content of ``profiles/index.json`` for the current profiles."""
    rows = []
    for name, file in shipped_profiles().items():
        digest = sha256_text(file.read_text(encoding="utf-8"))
        rows.append({**asdict(examine(name, file)), "sha256": digest})
    return compact_json({"profiles": rows}, rows=("profiles",))


def main(arguments: list[str]) -> int:
    return keep_current({INDEX: index()}, arguments)


def find_profile(name: str) -> Path:
    """Return the path of a file, or of a shipped profile named with or without its directory below profiles/.

    Raise HowdahError with the nearest name if there is neither.
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
        # Compare without the suffix, which makes any two names similar. A file's path means a shipped profile only if
        # the names are very similar.
        close = nearest(given.stem, beside) or nearest(given.stem, shipped, 0.7)
        if given.is_dir() or not close:
            return given
        raise ProfileError(f"there is no file {name}", hint=f"Did you mean {beside.get(close, close)}?")
    if (whole := given.with_name(f"{given.name}.yaml") if given.name else given).is_file():
        raise ProfileError(f"there is no profile '{name}'", hint=f"Did you mean {whole}?")
    below = {str(file.relative_to(PROFILES).with_suffix("")) for file in shipped.values()}
    if given.is_dir() or ("/" in name and not nearest(name, below)):
        return given
    close = nearest(name, below if "/" in name else shipped)
    names = ", ".join(file.stem for file in sorted(PROFILES.glob("*.yaml")))
    hint = f"Shipped profiles: {names}; 'howdah list profiles' has them all. Or give the path of a file."
    raise ProfileError(f"there is no profile '{name}'", hint=f"Did you mean {close}? {hint}" if close else hint)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
