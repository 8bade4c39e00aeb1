# SPDX-License-Identifier: Apache-2.0
"""What a run changes of the whole kernel – sysctls, parameters of modules –, and what it was before.

A guest ends with its run. A machine that goes on living gets everything back: the next run's plan names only what it
changes itself, and a ``cubic`` behind a ``cubic-no-hystart`` would run without HyStart. What was before is in a file
until then, so that the next run puts back what a killed one could not; a machine that boots forgets both.

A value may be written and told in two ways: the kernel says Y where 1 was asked for.
"""

from __future__ import annotations

import json
from pathlib import Path

from howdah.linux.kernelfile import read_file, write_file

JOURNAL = Path("/run/howdah-settings.json")
SYS_MODULE = Path("/sys/module")
_TRUE, _FALSE = {"1", "y", "yes", "on", "true"}, {"0", "n", "no", "off", "false"}


class Settings:
    """``journal`` is None where the kernel ends with the run."""

    def __init__(self, journal: Path | None = None) -> None:
        self._journal = journal
        self._before: dict[str, str] = {}

    @property
    def are_given_back(self) -> bool:
        return self._journal is not None

    def begin(self) -> list[str]:
        """Put back what a killed run left; returns what could not be."""
        if self._before or self._journal is None or not self._journal.exists():
            return []
        try:
            self._before = dict(json.loads(self._journal.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            return [f"{self._journal}: {error}"]
        return self.give_back()

    def write(self, path: Path, value: str) -> None:
        """Raises OSError when there is no such setting or the kernel refuses the value."""
        before = read_file(str(path)).strip()
        if before.split() == value.split():
            return
        if self._journal is not None and str(path) not in self._before:
            self._before[str(path)] = before
            new = self._journal.with_name(f".{self._journal.name}.new")
            new.write_text(json.dumps(self._before, indent=1) + "\n", encoding="utf-8")
            new.replace(self._journal)
        write_file(str(path), value)

    def parameter(self, module: str, name: str, value: str) -> None:
        """Of a loaded module or of built-in code. Raises OSError as ``write`` does."""
        self.write(SYS_MODULE / module / "parameters" / name, value)

    def give_back(self) -> list[str]:
        """Write what was before, the last change first; returns what could not be written."""
        problems = []
        for name, value in reversed(self._before.items()):
            try:
                Path(name).write_text(value, encoding="utf-8")
            except FileNotFoundError:
                continue  # the module is gone, and its parameters with it
            except OSError as error:
                problems.append(f"{name} stays changed, it was {value!r}: {error.strerror}")
        self._before.clear()
        if self._journal is not None:
            self._journal.unlink(missing_ok=True)
        return problems


def same_value(asked: str, found: str) -> bool:
    """Whether two texts are one value: 0x10 and 16, 1 and Y, lists of such."""
    if "," in asked or "," in found:
        parts = asked.split(","), found.split(",")
        return len(parts[0]) == len(parts[1]) and all(map(same_value, *parts))
    return _value(asked) == _value(found)


def _value(text: str) -> str | int | bool:
    plain = text.strip()
    try:
        return int(plain, 0)
    except ValueError:
        lowered = plain.lower()
        return lowered in _TRUE if lowered in _TRUE | _FALSE else plain
