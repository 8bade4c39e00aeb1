# SPDX-License-Identifier: Apache-2.0
"""Sign a run or an experiment: a list of the digests of all its files, signed with an ssh or a minisign key.

The list, ``manifest.sha256``, has the format of ``sha256sum -c`` and includes run.json. The signature beside it is made
by ``ssh-keygen -Y sign`` or by minisign, so both can be checked without howdah (docs/verify.md).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from howdah.distribution import installing
from howdah.errors import HowdahError
from howdah.foreign import files_below, read_foreign
from howdah.record.digest import MANIFEST, SSH_SIGNATURE, file_sha256
from howdah.record.digest import MINISIGN_SIGNATURE as MINISIGN
from howdah.record.directory import RunDirectory, read_object
from howdah.verify.experiment import runs_below

NAMESPACE = "howdah"
_BESIDE = (
    "experiment.json",
    "profile.yaml",
    "claims.json",
)  # signed files beside the runs; reports derive from them
_LIMIT_S = 60
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Signed:
    """A checked signature. ``signer`` describes the signer; ``vouched`` says whether a list of signers, or a given key,
    confirms it. ``differing`` are files that differ from what was signed."""

    signer: str
    vouched: bool
    differing: list[str]


def signed_files(path: Path) -> list[str]:
    """Sorted paths, relative to ``path``, of all files that a signature covers."""
    found = [name for name in _BESIDE if (path / name).is_file()]
    for run in runs_below(path):
        found += [file.relative_to(path).as_posix() for file in _files(run)]
    return sorted(found)


def _files(run: RunDirectory) -> list[Path]:
    """The run's files, including links and pipes, which a signature must neither follow nor accept as signed."""
    own = {MANIFEST, SSH_SIGNATURE, MINISIGN}
    names = [name for name, _kind in files_below(run.path) if not name.startswith(".") and "/." not in name]
    return [run.path / name for name in names if name.rpartition("/")[2] not in own]


def manifest(path: Path) -> str:
    """One line per file, in the format of ``sha256sum``. Raises HowdahError for a name that the format cannot hold."""
    lines = []
    for name in signed_files(path):
        if "\n" in name or "\\" in name:
            raise HowdahError(f"a file with the name {name!r} cannot be signed", where=str(path))
        lines.append(f"{file_sha256(path / name)}  {name}\n")
    if not lines:
        raise HowdahError("there is nothing to sign: this is neither a run nor an experiment", where=str(path))
    return "".join(lines)


def sign(path: Path, key: Path) -> Path:
    """Write the list and its signature; return the signature's path.

    A key file that begins like minisign's is used with minisign, any other with ``ssh-keygen``: a private key, or a
    public key whose private key an agent holds. Raises HowdahError if the program is missing or refuses.
    """
    require_key(key)
    text = manifest(path)
    target = path / MANIFEST
    minisign = key.read_bytes().startswith(b"untrusted comment:")
    signature = path / (MINISIGN if minisign else SSH_SIGNATURE)
    for old in (path / MINISIGN, path / SSH_SIGNATURE):
        old.unlink(missing_ok=True)  # made for an older list; after a kill here there is no signature
    target.write_text(text, encoding="utf-8")
    if minisign:
        command = [_program("minisign"), "-S", "-s", str(key), "-m", str(target), "-x", str(signature)]
        _run(command, asks=True)
        return signature
    return sign_file(target, key)


def require_key(key: Path) -> None:
    if not key.is_file():
        raise HowdahError("there is no such key", where=str(key), hint="ssh-keygen -t ed25519 makes one.")


def sign_file(file: Path, key: Path) -> Path:
    """Sign a file with an ssh key and write the signature beside it. Raises HowdahError."""
    require_key(key)
    _run([_program("ssh-keygen"), "-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, str(file)], asks=True)
    return file.with_name(f"{file.name}.sig")


def check_signature(path: Path, allowed_signers: Path | None = None, public_key: Path | None = None) -> Signed:
    """Check the signature and return the signer and the files that differ from what was signed.

    Raises HowdahError if nothing is signed, or the signature is not one of this list or not by an allowed signer.
    """
    target = path / MANIFEST
    if not target.exists():
        raise HowdahError("it is not signed", where=str(path), hint="'howdah sign' signs a run or an experiment.")
    if (path / SSH_SIGNATURE).exists():
        signer, vouched = ssh_signer(read_foreign(target), path / SSH_SIGNATURE, allowed_signers)
    elif (path / MINISIGN).exists():
        signer, vouched = _check_minisign(path, public_key)
    else:
        raise HowdahError("the list is there and its signature is not", where=str(target))
    differing = _differing(path, read_foreign(target).decode(errors="replace"))
    index = read_object(path / "experiment.json")
    if index.get("name") not in (None, path.name):
        differing.append(f"it was signed as {index['name']!r}, and lies here as {path.name!r}")
    return Signed(signer, vouched, differing)


def ssh_signer(text: bytes, signature: Path, allowed_signers: Path | None) -> tuple[str, bool]:
    """The signer of a text, in words, and whether the list confirms it. Raises HowdahError for a signature of another
    text, or by a signer who is not in the list."""
    program = _program("ssh-keygen")
    if allowed_signers is None:
        said = _run([program, "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)], text)
        return said.strip().splitlines()[-1] if said.strip() else "a key", False
    if not allowed_signers.is_file():
        raise HowdahError("there is no such list of signers", where=str(allowed_signers))
    command = [program, "-Y", "find-principals", "-f", str(allowed_signers), "-s", str(signature)]
    try:
        principals = _run(command, text)
    except HowdahError as error:
        signer, _vouched = ssh_signer(text, signature, None)  # raises if the signature is of another text
        raise HowdahError(
            f"nobody in this list has signed it: {signer}",
            where=str(allowed_signers),
            hint="Add a line with a name and the public key of a signer you trust (ssh-keygen(1), ALLOWED SIGNERS).",
        ) from error
    said = ""
    for principal in principals.split():
        command = [program, "-Y", "verify", "-f", str(allowed_signers), "-I", principal, "-n", NAMESPACE]
        said = _run([*command, "-s", str(signature)], text)
        break
    return said.strip().splitlines()[-1], True


def _check_minisign(path: Path, public_key: Path | None) -> tuple[str, bool]:
    if public_key is None:
        raise HowdahError(
            "a signature by minisign cannot be checked without the key", where=str(path), hint="--public-key FILE"
        )
    command = [_program("minisign"), "-V", "-p", str(public_key), "-m", str(path / MANIFEST)]
    _run([*command, "-x", str(path / MINISIGN)])
    return f"minisign key {public_key}", True


def _differing(path: Path, text: str) -> list[str]:
    known = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise HowdahError(f"this is not a line of a list of digests: {line[:80]!r}", where=str(path / MANIFEST))
        known[match[2]] = match[1]
    now = {name: file_sha256(path / name) for name in signed_files(path)}
    found = [f"{name} was changed since it was signed" for name in known if name in now and now[name] != known[name]]
    found += [f"{name} was signed and is missing" for name in known if name not in now]
    found += [f"{name} was added after the signature" for name in now if name not in known]
    return sorted(found)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        package = {"ssh-keygen": "openssh-client"}.get(name, name)
        raise HowdahError(f"the program {name} is missing", hint=installing(package))
    return found


def _run(command: list[str], text: bytes | None = None, *, asks: bool = False) -> str:
    """Run a program and return its output. If it ``asks`` for a passphrase, it has the terminal and no time limit."""
    errors = None if asks else subprocess.PIPE
    limit = None if asks else _LIMIT_S
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=errors, check=False, timeout=limit)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise HowdahError(f"{Path(command[0]).name} refuses: {said[-1] if said else f'status {done.returncode}'}")
    return done.stdout.decode(errors="replace")
