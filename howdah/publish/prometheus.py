# SPDX-License-Identifier: Apache-2.0
"""Finds the programs ``prometheus`` and ``promtool``, or fetches them without installing a service."""

from __future__ import annotations

import base64
import ctypes
import fcntl
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from howdah.build.cache import cache_root
from howdah.errors import ExitCode, HowdahError
from howdah.scratch import scratch

_USER = "howdah"
_LIBRARIES = ("libcrypt.so.1", "libcrypt.so.2")
_ALPHABET = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_ROUNDS = "$2b$04$"  # the fewest: nobody guesses 256 bits


@dataclass(frozen=True)
class Password:
    """``hashed`` is the bcrypt hash for the server's web configuration file."""

    word: str
    hashed: str

    @property
    def user(self) -> str:
        return _USER

    @property
    def authorization(self) -> str:
        """The Authorization header of a request (RFC 7617)."""
        return "Basic " + base64.b64encode(f"{_USER}:{self.word}".encode()).decode()

    def write(self, file: Path) -> None:
        """Write the file for --web.config.file, readable by this user alone, as JSON, which is valid YAML."""
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


PACKAGE = "prometheus"
_FETCH_LIMIT_S = 600
_STACK = re.compile(r"goroutine \d+|runtime stack:$")
_CRASH = re.compile(r"(?:fatal error|panic|runtime): (?P<why>.+)")
# Without a network it shall say so soon.
_APT_OPTIONS = ("--quiet", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=15")


class PrometheusUnavailableError(HowdahError):
    """Prometheus is not on this machine, or could not be fetched or started."""

    exit_code = ExitCode.NO_ENGINE


Program = TypeVar("Program")


@dataclass(frozen=True)
class Prometheus:
    """Paths of the two programs of one installation."""

    server: Path
    promtool: Path


def _in(directory: Path) -> Prometheus | None:
    server, promtool = directory / "prometheus", directory / "promtool"
    if os.access(server, os.X_OK) and os.access(promtool, os.X_OK):
        return Prometheus(server, promtool)
    return None


def find() -> Prometheus | None:
    """The programs from ``$HOWDAH_PROMETHEUS`` (a directory), the cache or PATH, in this order; None if in none of
    them.

    Raises PrometheusUnavailableError if ``$HOWDAH_PROMETHEUS`` is set but lacks one of the programs.
    """
    if chosen := os.environ.get("HOWDAH_PROMETHEUS"):
        found = _in(Path(chosen))
        if found is None:
            raise PrometheusUnavailableError(
                "$HOWDAH_PROMETHEUS does not hold the programs prometheus and promtool",
                where=chosen,
                hint="Set it to the directory of both, or unset it to use the cache or PATH.",
            )
        return found
    if found := _in(cache_root() / "prometheus" / "usr" / "bin"):
        return found
    server, promtool = shutil.which("prometheus"), shutil.which("promtool")
    return Prometheus(Path(server), Path(promtool)) if server and promtool else None


def fetch() -> Prometheus:
    """Find the programs, or unpack Debian's ``prometheus`` package into the cache. Needs no root and starts nothing.

    Raises PrometheusUnavailableError, which says what failed and what to do instead.
    """
    remedy = "Install prometheus and promtool, or set $HOWDAH_PROMETHEUS to their directory."
    return fetched(PACKAGE, find, remedy)


def fetched(package: str, find_it: Callable[[], Program | None], remedy: str) -> Program:
    """Return what ``find_it`` finds, after unpacking its package into the cache if necessary. Raises
    PrometheusUnavailableError; ``remedy`` is the hint for a machine without apt."""
    if found := find_it():
        return found
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            what = f"{package} is not on this machine and cannot be fetched without {program}"
            raise PrometheusUnavailableError(what, hint=remedy)
    target = cache_root() / package
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / f".lock-{package}").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second command waits and uses what the first one fetched
            if found := find_it():
                return found
            for stale in target.parent.glob(f".{package}-*"):  # of commands that were killed: the lock is ours
                shutil.rmtree(stale, ignore_errors=True)
            with scratch(f".{package}-", target.parent) as place:
                _unpack(package, place, target)
    except OSError as error:
        raise PrometheusUnavailableError(
            f"{package} cannot be unpacked: {error.strerror}", where=str(target.parent), hint="Set $HOWDAH_CACHE."
        ) from error
    found = find_it()
    if found is None:
        raise PrometheusUnavailableError(f"Debian's package {package} lacks its programs", where=str(target))
    return found


def _unpack(package: str, work: Path, target: Path) -> None:
    """Download a package, unpack it in ``work`` and rename it: a directory with the target's name is complete."""
    _call(
        ["apt-get", *_APT_OPTIONS, "download", package],
        work,
        package,
        "Run 'apt-get update' first; the package lists may be old.",
    )
    file = next(work.glob("*.deb"), None)
    if file is None:
        raise PrometheusUnavailableError(f"apt-get downloaded no package {package}")
    tree = work / "tree"
    _call(["dpkg-deb", "-x", str(file), str(tree)], work, package, "The download may be damaged: try again.")
    shutil.rmtree(target, ignore_errors=True)
    tree.rename(target)


def _call(command: list[str], directory: Path, package: str, hint: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False, timeout=_FETCH_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise PrometheusUnavailableError(f"'{command[0]}' did not end in {_FETCH_LIMIT_S} s", hint=hint) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        reason = said[-1] if said else f"status {done.returncode}"
        raise PrometheusUnavailableError(f"'{command[0]}' failed to get the package {package}: {reason}", hint=hint)


def complaint_of(text: str) -> str:
    """Why a Go program ended. Of a crash only the first line, because the stack traces help only its authors."""
    lines = text.strip().splitlines()
    if not any(_STACK.match(line) for line in lines):
        return text.strip() or "it said nothing"
    said = next((match["why"] for line in lines if (match := _CRASH.match(line))), lines[0])
    return f"it crashed: {said} (a limit of this shell may be too low: ulimit -a)"
