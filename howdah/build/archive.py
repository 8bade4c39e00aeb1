# SPDX-License-Identifier: Apache-2.0
"""Access to Debian's archive through apt with separate state: without root, and without changes to this machine's apt.

The index and fetched packages are in the cache. apt verifies the archive's signature on the index with Debian's own
keys, and each package's hash against the index. This machine's apt.conf (a proxy, for example) applies as usual.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from howdah.build.cache import Cache, file_sha256, locked
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.distribution import installing
from howdah.errors import HowdahError
from howdah.record.directory import write_json

_APT = Path("/etc/apt")
_OS_RELEASE = Path("/etc/os-release")
_DEBIAN = "http://deb.debian.org/debian"
_SECURITY = "http://deb.debian.org/debian-security"


def configured_mirror() -> str | None:
    """Return the Debian mirror that this machine's apt uses, so that a guest's packages come from the same one.

    None if it is unknown: mmdebstrap then uses Debian's own.
    """
    named = os.environ.get("HOWDAH_DEBIAN_MIRROR")
    if named:
        return named
    own = codename()
    return next((uri for uri, suites in apt_sources() if own in suites), None) if own else None


def debian_mirror() -> str:
    """Return the configured mirror, or Debian's own address."""
    return configured_mirror() or _DEBIAN


def security_mirror() -> str:
    """Return the mirror of debian-security: the named one, the one beside a named Debian mirror, apt's, or the default.

    Mirrors of both archives keep them side by side, as ``…/debian`` and ``…/debian-security``.
    """
    named = os.environ.get("HOWDAH_DEBIAN_SECURITY_MIRROR")
    if named:
        return named
    beside = os.environ.get("HOWDAH_DEBIAN_MIRROR")
    if beside and beside.rstrip("/").endswith("/debian"):
        return beside.rstrip("/") + "-security"
    own = codename()
    wanted = (f"{own}-security", f"{own}/updates")
    found = (uri for uri, suites in apt_sources() if any(suite in wanted for suite in suites))
    return next(found, _SECURITY) if own else _SECURITY


def codename() -> str | None:
    """Return ``bookworm`` on Debian 12; None on other distributions, whose mirrors do not carry Debian's suites."""
    try:
        release = _OS_RELEASE.read_text()
    except OSError:
        return None
    named = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    return named[1] if named and re.search(r"^ID=debian$", release, re.MULTILINE) else None


def apt_sources() -> Iterator[tuple[str, list[str]]]:
    """Yield URI and suites of each binary source (sources.list(5), both formats)."""
    for file in [_APT / "sources.list", *sorted((_APT / "sources.list.d").glob("*"))]:
        try:
            text = file.read_text(errors="replace")
        except OSError:
            continue
        if file.suffix == ".list":
            for match in re.finditer(r"^deb\s+(?:\[[^]]*\]\s+)?(https?://\S+)\s+(\S+)\s+main\b", text, re.MULTILINE):
                yield match[1], [match[2]]
        elif file.suffix == ".sources":
            for paragraph in re.split(r"\n\s*\n", text):
                fields = dict(re.findall(r"^([\w-]+):\s*(.*)$", paragraph, re.MULTILINE))
                uris = [uri for uri in fields.get("URIs", "").split() if uri.startswith("http")]
                if uris and "main" in fields.get("Components", "").split():
                    yield uris[0], fields.get("Suites", "").split()


SUITE = "trixie"  # Debian's suite for guests and machines
SUITES = Path(__file__).with_name("kernel-suites.txt")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PACKAGE = re.compile(r"linux-source-(?P<release>\d+\.\d+)")
_MADISON = re.compile(r"^\s*(?P<package>\S+) \|\s*(?P<version>\S+) \|\s*\S+ (?P<suite>[^/\s]+)/\S* ", re.MULTILINE)
_PROBLEM = re.compile(r"^(?:Err:\d+|[EW]:) ?(?P<text>.*)$")
_KINDS = {"debian": debian_mirror, "debian-security": security_mirror}

# Read after this machine's own apt.conf (a proxy stays), in apt.conf(5)'s syntax. Restricted to the index of packages.
# Unverified signatures are never accepted, whatever apt.conf allows. Its hooks are disabled, because they are about the
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
    """A package in a suite. ``release`` is the kernel's (``6.1``), ``version`` the package's (``6.1.192-2``)."""

    package: str
    release: str
    version: str
    suite: str


def read_suites(file: Path = SUITES) -> list[tuple[str, str]]:
    """Return archive and suite of every line of kernel-suites.txt. Raises ValueError that names a wrong line."""
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
    """Parse the output of ``apt-cache madison``: packages that match; the group ``release`` is the kernel's.

    For each package apt lists the highest version first.
    """
    found = []
    for line in _MADISON.finditer(madison):
        match = package.fullmatch(line["package"])
        if match:
            found.append(Offer(line["package"], match["release"], line["version"], line["suite"]))
    return found


def best_offers(madison: str) -> dict[str, Offer]:
    """Return the highest version of the source package for each kernel release."""
    found: dict[str, Offer] = {}
    for offer in all_offers(madison, _PACKAGE):
        found.setdefault(offer.release, offer)
    return found


def release_order(release: str) -> tuple[int, ...]:
    """Return a sort key by which 6.12 is newer than 6.1 and 6.2."""
    return tuple(int(part) for part in release.split("."))


class Archive:
    """The index in ``<cache>/apt``. Methods raise HowdahError with apt's message."""

    def __init__(self, cache: Cache) -> None:
        self.root = cache.root / "apt"
        self._stamp = self.root / "updated"
        self._offers = self.root / "offers.json"

    def age_s(self) -> float | None:
        """Return the seconds since the last update of the index; None if it was never updated."""
        try:
            return max(0.0, time.time() - self._stamp.stat().st_mtime)
        except OSError:
            return None

    def stamp(self) -> str | None:
        """Return a name for the state of the index, which changes with every update; None before the first."""
        try:
            return str(self._stamp.stat().st_mtime_ns)
        except OSError:
            return None

    def set_age(self, age_s: float) -> None:
        """Make the index count as updated ``age_s`` seconds ago."""
        self._stamp.touch()
        then = time.time() - age_s
        os.utime(self._stamp, (then, then))

    def update(self, log: Path, launcher: Path | None = None) -> list[str]:
        """Update the index and return apt's complaints. Parts that cannot be fetched stay as they were."""
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
            # With an earlier index, being offline should be noticed at once.
            retries = ["-o", f"Acquire::Retries={0 if self._offers.exists() else 2}"]
            try:
                run_logged(["apt-get", *self._settings, *retries, "update"], log, launcher=launcher, on_line=listen)
            except CommandFailedError as error:
                problems = problems or error.tail[-3:]
            names = [name for name in self.ask("pkgnames", "linux-source-").split() if _PACKAGE.fullmatch(name)]
            offers = best_offers(self.ask("madison", *sorted(names))) if names else {}
            write_json(self._offers, [asdict(offer) for offer in offers.values()])
            if not problems:
                self.set_age(0)
        return problems

    def offers(self) -> dict[str, Offer]:
        """Return the best offer for each kernel release as of the last update; empty if there was none. No network."""
        try:
            found = [Offer(**record) for record in json.loads(self._offers.read_text())]
        except FileNotFoundError:
            return {}
        return {offer.release: offer for offer in found}

    def fetch(self, offer: Offer, into: Path, log: Path, launcher: Path | None = None) -> tuple[Path, str]:
        """Download a package; return the file and its SHA-256, which is compared with the signed index once more."""
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

    def fetch_unpacked(self, offer: Offer, into: Path, log: Path, launcher: Path | None = None) -> None:
        """Download a package and keep only its unpacked files. Raises as ``fetch`` does."""
        file, _sha256 = self.fetch(offer, into, log, launcher)
        run_logged(["dpkg-deb", "-x", str(file), str(into)], log)
        file.unlink()

    def ask(self, *arguments: str) -> str:
        """Query the index as it is with apt-cache(8)."""
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
    """Return the lines of a sources.list(5)."""
    return [f"deb [signed-by={KEYRING}] {_KINDS[archive]()} {suite} main" for archive, suite in suites]


def unpack_package(file: Path, into: Path, log: Path, failing: str, where: str, hint: str | None = None) -> None:
    """Unpack a Debian package's files. Raises HowdahError with the message ``failing`` and dpkg-deb's last lines."""
    try:
        run_logged(["dpkg-deb", "-x", str(file), str(into)], log)
    except CommandFailedError as error:
        raise HowdahError(f"{failing}: " + " / ".join(error.tail[-3:]), where=where, hint=hint) from error


def bootstrap(
    target: Path,
    options: Sequence[str],
    packages: Sequence[str],
    log: Path,
    launcher: Path,
    on_line: Callable[[str], None],
    failing: str,
    needs: Sequence[str] = ("mmdebstrap",),
) -> None:
    """Make a system from packages with mmdebstrap. Raises HowdahError with the message ``failing`` and the reason.

    ``needs`` are the Debian packages to install if mmdebstrap is missing.
    """
    mirror = configured_mirror()
    command = ["mmdebstrap", *options, f"--include={','.join(packages)}", SUITE, str(target)]
    try:
        run_logged([*command, *([mirror] if mirror else [])], log, launcher=launcher, on_line=on_line)
    except CommandFailedError as error:
        said = [line for line in error.tail if line.startswith("E:") or "rror" in line] or error.tail
        missing = error.status in (126, 127)
        raise HowdahError(
            "mmdebstrap is not installed" if missing else f"{failing}: " + " / ".join(said[-3:]),
            where=mirror or "Debian's default mirror",
            hint=installing(*needs) if missing else f"Is the mirror reachable? The full output is in {log}",
        ) from error


def listed_packages(file: Path) -> list[str]:
    """Read package names, one per line."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return sorted(line for line in lines if line and not line.startswith("#"))


def _no_apt() -> HowdahError:
    return HowdahError(
        "kernel sources are fetched with apt, and apt-cache is not installed",
        hint="Name a kernel source tree with --kernel PATH.",
    )
