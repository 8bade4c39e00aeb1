# SPDX-License-Identifier: Apache-2.0
"""Debian's archive, read by apt with a state of its own: no root, and nothing of this machine's apt is changed.

The index and what is fetched are in the cache. apt checks the archive's signature on the index and the index's hash of
each package; the keys are Debian's own. This machine's apt.conf (a proxy, for example) is read as always.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from howdah.build.cache import Cache, file_sha256, locked
from howdah.build.mirror import debian_mirror, security_mirror
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.distribution import installing
from howdah.errors import HowdahError

SUITES = Path(__file__).with_name("kernel-suites.txt")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PACKAGE = re.compile(r"linux-source-(?P<release>\d+\.\d+)")
_MADISON = re.compile(r"^\s*(?P<package>\S+) \|\s*(?P<version>\S+) \|\s*\S+ (?P<suite>[^/\s]+)/\S* ", re.MULTILINE)
_PROBLEM = re.compile(r"^(?:Err:\d+|[EW]:) ?(?P<text>.*)$")
_KINDS = {"debian": debian_mirror, "debian-security": security_mirror}

# Read behind this machine's own apt.conf (a proxy stays), in apt.conf(5)'s syntax. The index of packages alone; never
# something whose signature could not be checked, whatever apt.conf allows; and none of its hooks: they are about the
# machine's own packages.
_CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::Retries "2";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::Etc::SourceList "{root}/sources.list";
Dir::State "{root}/state";
Dir::State::Lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::GzipIndexes "true";
"""


@dataclass(frozen=True)
class Offer:
    """A package a suite carries. ``release`` is the kernel's (``6.1``), ``version`` the package's (``6.1.192-2``)."""

    package: str
    release: str
    version: str
    suite: str


def read_suites(file: Path = SUITES) -> list[tuple[str, str]]:
    """Archive and suite of every line of kernel-suites.txt. Raises ValueError naming a wrong line."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        if len(fields) != 2 or fields[0] not in _KINDS:
            raise ValueError(f"{file}:{number}: expected one of {', '.join(_KINDS)} and a suite")
        found.append((fields[0], fields[1]))
    return found


def all_offers(madison: str, package: re.Pattern[str]) -> list[Offer]:
    """From ``apt-cache madison``: packages of that name, whose group ``release`` is the kernel's.

    Of one package apt lists the highest version first.
    """
    found = []
    for line in _MADISON.finditer(madison):
        match = package.fullmatch(line["package"])
        if match:
            found.append(Offer(line["package"], match["release"], line["version"], line["suite"]))
    return found


def best_offers(madison: str) -> dict[str, Offer]:
    """Of each kernel release the highest version of its source package."""
    found: dict[str, Offer] = {}
    for offer in all_offers(madison, _PACKAGE):
        found.setdefault(offer.release, offer)
    return found


def release_order(release: str) -> tuple[int, ...]:
    """Sort key: 6.12 is newer than 6.1 and 6.2."""
    return tuple(int(part) for part in release.split("."))


class Archive:
    """The index in ``<cache>/apt``. Methods raise HowdahError naming what apt said."""

    def __init__(self, cache: Cache) -> None:
        self.root = cache.root / "apt"
        self._stamp = self.root / "updated"
        self._offers = self.root / "offers.json"

    def age_s(self) -> float | None:
        """Seconds since the index was brought up to date; None if it never was."""
        try:
            return max(0.0, time.time() - self._stamp.stat().st_mtime)
        except OSError:
            return None

    def stamp(self) -> str | None:
        """Names the state of the index: another one after each time it was brought up to date; None before."""
        try:
            return str(self._stamp.stat().st_mtime_ns)
        except OSError:
            return None

    def set_age(self, age_s: float) -> None:
        """Have the index count as brought up to date that long ago."""
        self._stamp.touch()
        then = time.time() - age_s
        os.utime(self._stamp, (then, then))

    def update(self, log: Path, launcher: Path | None = None) -> list[str]:
        """Bring the index up to date; returns what apt complained of. What could not be had stays as it was."""
        if not KEYRING.is_file():
            raise HowdahError(
                "the keys of Debian's archive are not here, so nothing from it can be trusted",
                where=str(KEYRING),
                hint=installing("debian-archive-keyring"),
            )
        problems: list[str] = []

        def listen(line: str) -> None:
            match = _PROBLEM.match(line)
            if match:
                problems.append(match["text"])

        with self._locked():
            self._prepare()
            # With an index from before, being offline should show at once.
            retries = ["-o", f"Acquire::Retries={0 if self._offers.exists() else 2}"]
            try:
                run_logged(["apt-get", *self._settings, *retries, "update"], log, launcher=launcher, on_line=listen)
            except CommandFailedError as error:
                problems = problems or error.tail[-3:]
            names = [name for name in self.ask("pkgnames", "linux-source-").split() if _PACKAGE.fullmatch(name)]
            offers = best_offers(self.ask("madison", *sorted(names))) if names else {}
            written = self._offers.with_suffix(".new")
            written.write_text(json.dumps([asdict(offer) for offer in offers.values()], indent=1) + "\n")
            written.rename(self._offers)
            if not problems:
                self.set_age(0)
        return problems

    def offers(self) -> dict[str, Offer]:
        """The best offer for each kernel release when the index was last asked for; empty if never. No network."""
        try:
            found = [Offer(**record) for record in json.loads(self._offers.read_text())]
        except FileNotFoundError:
            return {}
        return {offer.release: offer for offer in found}

    def fetch(self, offer: Offer, into: Path, log: Path, launcher: Path | None = None) -> tuple[Path, str]:
        """Download a package; returns the file and its SHA-256, compared with the signed index once more."""
        wanted = re.search(r"^SHA256: (\w{64})$", self.ask("show", f"{offer.package}={offer.version}"), re.MULTILINE)
        try:
            run_logged(
                ["apt-get", *self._settings, "download", f"{offer.package}={offer.version}"],
                log,
                launcher=launcher,
                cwd=into,
            )
        except CommandFailedError as error:
            said = [line for line in error.tail if line.startswith(("E:", "W:", "Err:"))] or error.tail
            raise HowdahError(
                f"{offer.package} {offer.version} cannot be fetched: " + " / ".join(said[-3:]),
                where=offer.suite,
                hint=f"The full output is in {log}",
            ) from error
        (file,) = into.glob("*.deb")
        found = file_sha256(file)
        if wanted is None or found != wanted[1]:
            file.unlink()
            raise HowdahError(
                f"what was fetched is not {offer.package} {offer.version}: its SHA-256 is {found}, "
                f"the index says {wanted[1] if wanted else 'nothing'}",
                where=offer.suite,
            )
        return file, found

    def ask(self, *arguments: str) -> str:
        """What apt-cache(8) says of the index as it is."""
        command = ["apt-cache", *self._settings, *arguments]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
        except FileNotFoundError as error:
            raise _no_apt() from error
        except subprocess.CalledProcessError as error:
            raise HowdahError(f"apt cannot read its index: {error.stderr.strip()}", where=str(self.root)) from error
        return answer.stdout

    @property
    def _settings(self) -> tuple[str, str]:
        return "--config-file", str(self.root / "apt.conf")

    def _prepare(self) -> None:
        for name in ("state", "lists/partial", "cache/archives/partial"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        (self.root / "status").touch()
        (self.root / "apt.conf").write_text(_CONFIGURATION.format(root=self.root))
        (self.root / "sources.list").write_text("".join(f"{line}\n" for line in source_lines(read_suites())))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with locked(self.root / ".lock", lambda: None):
            yield


def source_lines(suites: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of a sources.list(5)."""
    return [f"deb [signed-by={KEYRING}] {_KINDS[archive]()} {suite} main" for archive, suite in suites]


def _no_apt() -> HowdahError:
    return HowdahError(
        "kernel sources are fetched with apt, and apt-cache is not installed",
        hint="Name a kernel source tree with --kernel PATH.",
    )
