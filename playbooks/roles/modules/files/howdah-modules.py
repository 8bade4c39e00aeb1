#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Has DKMS build and install howdah's modules for one kernel; those that do not build for it are left out, and named.

howdah-modules.py VERSION KERNEL [--again]: prints one JSON object: ``changed``; ``left_out``, name to the compiler's
words. Ends with status 1 when not even one module builds. ``--again`` forgets what was built before.
It runs on the hosts, so it imports nothing beyond the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_OBJECT_FAILED = re.compile(r"^(.*)\n.*\*\*\* \[[^\]]*?([\w./-]+)\.o\] Error", re.MULTILINE)
_SYMBOL_MISSING = re.compile(r'"(\w+)" \[([\w./-]+)\.ko\] undefined')
_WORDS = re.compile(r"^(\S+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)


def module_of(path: str) -> str:
    """The module that an object file belongs to: each of algorithms/ is one, another directory is one altogether."""
    *directories, name = [part for part in path.split("/") if part]
    directory = directories[-1] if directories else ""
    return name if directory in ("", "algorithms") or name.startswith("howdah_") else f"howdah_{directory}"


def failed_modules(output: str, place: str) -> dict[str, str]:
    """Name to reason of the modules that this build (``make -k``) in ``place`` did not get done."""
    words: dict[str, str] = {}
    for file, line, what in _WORDS.findall(output):
        relative = file.removeprefix(f"{place}/")
        words.setdefault(module_of(relative.rpartition(".")[0]), f"{relative}:{line}: {what}")
    found = {}
    for before, path in _OBJECT_FAILED.findall(output):
        name = module_of(path.removeprefix(place))
        found[name] = words.get(name, before.strip() or "does not compile")
    for symbol, path in _SYMBOL_MISSING.findall(output):
        found.setdefault(module_of(path.removeprefix(place)), f"nothing that builds has {symbol}")
    return found


def try_all(source: Path, kernel: str) -> tuple[dict[str, str], set[str]]:
    """What has to be left out so that the rest builds for that kernel, and the rest."""
    left_out: dict[str, str] = {}
    while True:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name) / "build"
            command = [
                *("make", "--keep-going", f"--jobs={os.cpu_count()}", "--directory", str(source)),
                *(f"KDIR=/lib/modules/{kernel}/build", f"OUT={place}", f"HOWDAH_LEFT_OUT={' '.join(left_out)}"),
            ]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            built = {file.stem for file in place.rglob("*.ko")}
        if done.returncode == 0:
            return left_out, built
        found = {name: why for name, why in failed_modules(done.stdout, str(place)).items() if name not in left_out}
        if not found:
            last = (done.stdout.strip().splitlines() or ["make said nothing"])[-1]
            raise SystemExit(f"the modules do not build for {kernel}: {last}")
        left_out |= found


def dkms(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["dkms", *arguments], capture_output=True, text=True, check=False)


def read_left_out(record: Path) -> dict[str, str]:
    try:
        lines = record.read_text().splitlines()
    except FileNotFoundError:
        return {}
    return dict(line.split("\t", 1) for line in lines)


def install(version: str, kernel: str, again: bool) -> dict[str, object]:
    package = f"howdah/{version}"
    source = Path("/usr/src") / f"howdah-{version}"
    record = source / "left-out" / kernel
    status = dkms("status", package, "-k", kernel).stdout
    if ": installed" in status and not again:
        return {"changed": False, "left_out": read_left_out(record)}
    if dkms("status", package).stdout.strip():
        dkms("remove", package, "--all")
        shutil.rmtree(record.parent, ignore_errors=True)
    record.unlink(missing_ok=True)
    done = dkms("install", package, "-k", kernel)
    left_out: dict[str, str] = {}
    if done.returncode:
        left_out, built = try_all(source, kernel)
        if not built:
            raise SystemExit(f"not one module builds for {kernel}: {next(iter(left_out.values()))}")
        record.parent.mkdir(exist_ok=True)
        record.write_text("".join(f"{name}\t{why}\n" for name, why in sorted(left_out.items())))
        dkms("remove", package, "--all")
        done = dkms("install", package, "-k", kernel)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()[-3:]
        raise SystemExit(f"dkms install {package} for {kernel}: {' / '.join(said)}")
    return {"changed": True, "left_out": left_out}


def main() -> int:
    parser = argparse.ArgumentParser(description="Build and install howdah's modules for one kernel.")
    parser.add_argument("version")
    parser.add_argument("kernel")
    parser.add_argument("--again", action="store_true", help="the sources have changed")
    options = parser.parse_args()
    found = install(options.version, options.kernel, options.again)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
