# SPDX-License-Identifier: Apache-2.0
"""Kernel-wide settings that a run changes (sysctls and module parameters), and their values before it.

A guest ends with its run. A machine that outlives the run gets all values restored, because the next run's plan names
only what it changes itself: a ``cubic`` after a ``cubic-no-hystart`` would run without HyStart. Until then the old
values are in a journal file, from which the next run restores what a killed run could not; a reboot clears both.

A value may read back in another form than it was written: 1 as Y, for example.
"""

from __future__ import annotations

import json
from pathlib import Path

from howdah.linux.kernelfile import read_file, write_file

JOURNAL = Path("/run/howdah-settings.json")
SYS_MODULE = Path("/sys/module")
_TRUE, _FALSE = {"1", "y", "yes", "on", "true"}, {"0", "n", "no", "off", "false"}


class Settings:
    """Kernel-wide settings with a journal of their old values; ``journal`` is None if the kernel ends with the run."""

    def __init__(self, journal: Path | None = None) -> None:
        self._journal = journal
        self._before: dict[str, str] = {}

    @property
    def are_restored(self) -> bool:
        return self._journal is not None

    def recover(self) -> list[str]:
        """Restore what a killed run left changed; return messages about values that could not be restored."""
        if self._before or self._journal is None or not self._journal.exists():
            return []
        try:
            self._before = dict(json.loads(self._journal.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            return [f"{self._journal}: {error}"]
        return self.restore()

    def write(self, path: Path, value: str) -> None:
        """Write a setting and keep its old value. Raises OSError if the setting does not exist or the kernel refuses
        the value."""
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
        """Write a parameter of a loaded module or of built-in code. Raises OSError as ``write`` does."""
        self.write(SYS_MODULE / module / "parameters" / name, value)

    def restore(self) -> list[str]:
        """Restore the old values, the last change first; return messages about values that could not be written."""
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
    """Whether two texts mean the same value: 0x10 and 16, 1 and Y, or lists of such values."""
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
