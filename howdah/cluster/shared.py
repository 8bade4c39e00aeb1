# SPDX-License-Identifier: Apache-2.0
"""Stores finished runs in a place that workers and client share: a file system or an object store.

Each key has a directory with a pack and a record for each time it was made, named by the hash of the pack. The record
is written last, so a pack without a record does not count.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from howdah.cluster.message import MadeRun
from howdah.errors import HowdahError, explain

_PACK, _RECORD = ".howdah.tar.zst", ".json"


class SharedStore:
    """``url`` is one of fsspec's: file:///shared/runs, s3://bucket/runs. Raises HowdahError where it is none."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self.url = url
        try:
            self._files, root = url_to_fs(url)
        except (ImportError, ValueError, OSError) as error:
            raise HowdahError(
                f"this store cannot be used: {error}",
                where=url,
                hint="Name a directory or bucket as fsspec does: file:///shared/runs, s3://bucket/runs.",
            ) from error
        self._root = str(root).rstrip("/")

    def put(self, made: MadeRun, pack: Path) -> None:
        """Store a finished run. Raises HowdahError if that fails."""
        place = f"{self._root}/{made.key}"
        try:
            self._files.makedirs(place, exist_ok=True)
            self._write(f"{place}/{made.sha256}{_PACK}", pack.read_bytes())
            self._write(f"{place}/{made.sha256}{_RECORD}", made.to_json().encode())
        except Exception as error:
            raise HowdahError(f"the run cannot be put into the store: {_explain(error)}", where=self.url) from error

    def _write(self, target: str, content: bytes) -> None:
        """Write under another name and rename, so that no reader sees half a file."""
        partial = f"{target}.writing-{secrets.token_hex(4)}"
        self._files.pipe_file(partial, content)
        self._files.mv(partial, target)

    def keys(self) -> set[str]:
        """Keys of runs that may be here. Raises HowdahError if the store does not answer."""
        try:
            return {str(name).rstrip("/").rpartition("/")[2] for name in self._files.ls(self._root, detail=False)}
        except FileNotFoundError:
            return set()
        except Exception as error:
            raise HowdahError(f"the store cannot be read: {_explain(error)}", where=self.url) from error

    def find(self, key: str) -> list[MadeRun]:
        """The records of all runs of this key. Unreadable ones are skipped."""
        found = []
        with suppress(Exception):
            self._files.invalidate_cache()
            for name in sorted(map(str, self._files.ls(f"{self._root}/{key}", detail=False))):
                if name.endswith(_RECORD):
                    with suppress(ValueError):
                        made = MadeRun.from_json(self._files.cat_file(name))
                        if made.key == key and name.endswith(f"/{made.sha256}{_RECORD}"):
                            found.append(made)
        return found

    def read(self, made: MadeRun) -> bytes:
        """Read the pack of a record. Raises HowdahError if that fails."""
        try:
            return bytes(self._files.cat_file(f"{self._root}/{made.key}/{made.sha256}{_PACK}"))
        except Exception as error:
            raise HowdahError(f"the run cannot be taken from the store: {_explain(error)}", where=self.url) from error


def _explain(error: Exception) -> str:
    """Turn the errors of each kind of store into HowdahError."""
    return explain(error) if isinstance(error, OSError) else str(error) or type(error).__name__
