# SPDX-License-Identifier: Apache-2.0
"""A random password for servers that howdah starts and that do not check ``Host``.

A web page can have its host name resolve to 127.0.0.1 and read what answers there (DNS rebinding). Prometheus and
node_exporter cannot check names, but they can ask for a password (Prometheus: HTTPS and authentication).
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from howdah.publish.prometheus import PrometheusUnavailableError

_USER = "howdah"
_LIBRARIES = ("libcrypt.so.1", "libcrypt.so.2")
_ALPHABET = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_ROUNDS = "$2b$04$"  # the fewest: nobody guesses 256 bits


@dataclass(frozen=True)
class Password:
    """``hashed`` is by bcrypt, as the server's file of its web has it."""

    word: str
    hashed: str

    @property
    def user(self) -> str:
        return _USER

    @property
    def authorization(self) -> str:
        """The header of a request (RFC 7617)."""
        return "Basic " + base64.b64encode(f"{_USER}:{self.word}".encode()).decode()

    def write(self, file: Path) -> None:
        """What --web.config.file names, as JSON, which YAML contains; for this user alone."""
        text = json.dumps({"basic_auth_users": {_USER: self.hashed}})
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(text)


def new_password() -> Password:
    """Make a password. Raises PrometheusUnavailableError if libcrypt is missing."""
    word = secrets.token_urlsafe(32)
    salt = "".join(secrets.choice(_ALPHABET) for _ in range(21)) + secrets.choice(".Oeu")  # 128 bits in 22 letters
    for name in _LIBRARIES:
        try:
            crypt = ctypes.CDLL(name).crypt
        except (OSError, AttributeError):
            continue
        crypt.restype = ctypes.c_char_p
        found = crypt(word.encode(), (_ROUNDS + salt).encode())
        if found is not None and found.decode().startswith(_ROUNDS):
            return Password(word, found.decode())
    raise PrometheusUnavailableError(
        "a server on this machine cannot be kept from pages of the web: the library libcrypt is missing",
        hint="It is Debian's package libcrypt1.",
    )
