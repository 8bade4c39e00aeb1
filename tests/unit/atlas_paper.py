# SPDX-License-Identifier: Apache-2.0
"""What a paper has in the atlas, for tests: its entries and the claims of its profiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.profile import Profile

ROOT = Path(__file__).resolve().parents[2]


@cache
def profile(name: str, quick: bool = False) -> Profile:
    """A profile of the atlas by the stem of its file."""
    return load(ROOT / "profiles" / "atlas" / f"{name}.yaml", quick=quick)


@dataclass(frozen=True)
class Paper:
    """``prefix`` begins the ids of its entries, ``file`` is the stem of its entry file."""

    prefix: str
    file: str
    profiles: tuple[str, ...]

    @property
    def ids(self) -> list[str]:
        """As kinds.yaml has them."""
        return [name for name in self.kinds if name.startswith(self.prefix)]

    @property
    def kinds(self) -> dict[str, str]:
        return dict(YAML(typ="safe").load(ROOT / "reports" / "atlas" / "kinds.yaml"))

    @property
    def entries(self) -> dict[str, dict[str, Any]]:
        listed = YAML(typ="safe").load(ROOT / "reports" / "atlas" / "entries" / f"{self.file}.yaml")
        return {entry["id"]: entry for entry in listed}

    @property
    def claims(self) -> list[ClaimSection]:
        return [claim for name in self.profiles for claim in profile(name).claims]

    def expected(self, entry: str) -> set[str]:
        """Every number that a claim of the entry expects, as it is written, those of ratios too."""
        found: set[str] = set()
        for claim in self.claims:
            if entry not in claim.entry or claim.expect is None:
                continue
            for section in (claim.expect, claim.expect.ratio, claim.expect.difference):
                if section is not None:
                    found |= {str(getattr(section, form)) for form in section.given}
        return found

    def check(self) -> None:
        """Every id has an entry, every experiment a claim in one of its own profiles, everything else a reason."""
        entries = self.entries
        assert list(entries) == self.ids
        for name, entry in entries.items():
            assert entry["title"], name
            assert entry["says"], name
            if self.kinds[name] != "experiment":
                assert entry["reason"], name
                continue
            assert set(entry["profiles"]) <= set(self.profiles), name
            for each in entry["profiles"]:
                assert any(name in claim.entry for claim in profile(each).claims), f"{each} claims nothing of {name}"

    def check_runs(self, name: str, full: int, quick: int) -> None:
        """So many runs, and those of the quick atlas are among those of the full one."""
        whole = [cell.run for cell in profile(name).cells()]
        part = [cell.run for cell in profile(name, quick=True).cells()]
        assert (len(whole), len(part)) == (full, quick)
        assert set(part) <= set(whole)
        assert profile(name).repetitions >= 10
