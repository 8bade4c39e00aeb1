# SPDX-License-Identifier: Apache-2.0
"""A secret of the user's in the cache, and codes that show what this user's howdah wrote.

A file that a command acts on, and that could be a stranger's because directories are passed on, carries such a code.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress

from howdah.build.cache import cache_root


def secret() -> bytes:
    """What only this user knows, made when it is first asked for."""
    file = cache_root() / "secret"
    with suppress(FileNotFoundError):
        return file.read_bytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_name(f"secret-{os.getpid()}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(secrets.token_bytes(32))
    with suppress(FileExistsError):
        os.link(made, file)  # unlike a rename it leaves one that another process made meanwhile
    made.unlink()
    return file.read_bytes()


def code(content: bytes) -> str:
    """Shows that this user wrote ``content``."""
    return hmac.new(secret(), content, hashlib.sha256).hexdigest()[:32]


def is_ours(content: bytes, said: object) -> bool:
    """Whether ``said`` is the code of ``content``."""
    return isinstance(said, str) and hmac.compare_digest(said.encode(errors="replace"), code(content).encode())
