# SPDX-License-Identifier: Apache-2.0
"""What keeps others from servers that we start and that look at no ``Host``: a password of the moment.

A page of the web has a name of its own turned into 127.0.0.1 and reads whatever answers there. Prometheus and its
node_exporter know no names, but they ask for a password (Prometheus: HTTPS and authentication).
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
    """Raises PrometheusUnavailableError."""
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
