# SPDX-License-Identifier: Apache-2.0
"""Resolves addresses of a CPU profile to names while the kernel's image is available, before it is needed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from howdah.build.cache import Cache, Progress
from howdah.build.inlined import Function, Inlined, SymbolTable, build_objects, read_functions
from howdah.build.uml_kernel import Kernel
from howdah.codec import decoded, encoded
from howdah.errors import HowdahError
from howdah.record.directory import read_json
from howdah.record.raw import PROFILE_FILE, PROFILE_SAMPLES, CpuProfile

_MODULES_FILE = "cpu-modules.json"
_LARGEST_FUNCTION_BYTES = 1 << 16  # limit for the last symbol: kallsyms gives no sizes
_UNKNOWN = "?"


def prepare(kernel: Kernel, progress: Progress, cache: Cache) -> None:
    """Build the debug objects that name inlined functions before the first run; failures are reported with the runs."""
    with contextlib.suppress(HowdahError):
        build_objects(kernel, progress, cache)


def name_samples(raw: Path, kernel: Kernel, progress: Progress, cache: Cache) -> None:
    """Rewrite cpu-profile.txt: ``HOST_US DOMAIN SYMBOL INLINED`` per sample, INLINED ``f<g``, inner first, or ``-``.

    DOMAIN is ``kernel`` (the image), ``module``, ``library`` (the kernel's process elsewhere) or ``user`` (processes of
    the guest). cpu-profile.json gets ``inlined_why``: null, or why inlined functions are unknown.
    """
    account = decoded(CpuProfile, read_json(raw / PROFILE_FILE))
    if account.why is not None:
        return
    image = SymbolTable(read_functions(kernel.image))
    inlined: Inlined | None = None
    try:
        inlined = Inlined(image, build_objects(kernel, progress, cache))
        account.inlined_why = None
    except HowdahError as error:
        account.inlined_why = f"{error.where}: {error.what}" if error.where else error.what
    samples = [line.split() for line in (raw / PROFILE_SAMPLES).read_text(encoding="utf-8").splitlines()]
    addresses = {int(address, 16) for _time, where, address, _object in samples if where == "main"}
    chains = inlined.chains(addresses) if inlined is not None else {}
    modules = _module_symbols(raw / _MODULES_FILE)
    temporary = raw / f".{PROFILE_SAMPLES}.new"
    with temporary.open("w", encoding="utf-8") as file:
        for time_us, where, text, name in samples:
            address = int(text, 16)
            domain, symbol = _place(address, where, name, image, modules)
            file.write(f"{time_us} {domain} {symbol} {'<'.join(chains.get(address, ())) or '-'}\n")
    temporary.replace(raw / PROFILE_SAMPLES)
    (raw / PROFILE_FILE).write_text(json.dumps(encoded(account), indent=1) + "\n", encoding="utf-8")


def _place(address: int, where: str, name: str, image: SymbolTable, modules: SymbolTable) -> tuple[str, str]:
    if where != "main":
        return "user", _UNKNOWN
    if found := image.at(address):
        return "kernel", found.name
    if name == "linux":
        return "kernel", _UNKNOWN
    if found := modules.at(address):
        return "module", found.name
    return "library", name


def _module_symbols(file: Path) -> SymbolTable:
    """Return the symbols of modules that the guest recorded, each reaching to the next; empty without a record."""
    try:
        symbols = json.loads(file.read_text(encoding="utf-8"))["modules"]
    except (OSError, ValueError, KeyError):
        symbols = []
    return SymbolTable(module_functions(symbols))


def module_functions(symbols: list[tuple[int, str, str]]) -> list[Function]:
    """Return functions from symbols (address, name, module) sorted by address."""
    ends = [address for address, _name, _module in symbols[1:]]
    ends += [symbols[-1][0] + _LARGEST_FUNCTION_BYTES] if symbols else []
    return [
        Function(address, min(max(end - address, 1), _LARGEST_FUNCTION_BYTES), name)
        for (address, name, _module), end in zip(symbols, ends, strict=True)
    ]
