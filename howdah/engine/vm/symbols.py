# SPDX-License-Identifier: Apache-2.0
"""Names for addresses in a distribution's kernel, which comes without symbols: the kernel itself lists them.

/proc/kallsyms has every function, static ones too, unless the compiler inlined it; without address randomisation the
list is the same in every run. Modules are located through /sys/module, and their files have symbols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from howdah.build.cache import Cache, Progress, content_key
from howdah.build.inlined import Function, SymbolTable, read_functions
from howdah.build.stock_kernel import StockKernel
from howdah.engine.vm.machine import QemuMachine, run
from howdah.scratch import scratch

_LAYOUT = "1"  # part of the key: raise it when the files of an entry change
_FILE = "kallsyms.txt"
_LINE = re.compile(r"^(?P<address>[0-9a-f]{16}) [tTwW] (?P<name>\S+)$", re.MULTILINE)
_LARGEST_FUNCTION_BYTES = 1 << 16  # limit for the last symbol: kallsyms gives no sizes
_PADDING = "__pfx_"  # prefix of symbols for the padding before a function
_TCP = re.compile(r"_*tcp_\w+")
KERNEL_HALF = 1 << 63
# Functions in which an idle processor waits; interrupts have functions of their own.
IDLE = (
    "default_idle",
    "native_safe_halt",
    "pv_native_safe_halt",
    "default_idle_call",
    "acpi_safe_halt",
    "arch_cpu_idle",
)

MakeMachine = Callable[[tuple[str, ...], Path], QemuMachine]  # program and arguments, directory for its results


def kernel_symbols(kernel: StockKernel, make: MakeMachine, progress: Progress, cache: Cache) -> SymbolTable:
    """Return the functions of the kernel's image; the kernel's list is obtained once, with a boot (half a minute)."""

    def ask(directory: Path, _log: Path) -> None:
        progress(f"names of the functions of {kernel.release}", 0, 0)
        with scratch("howdah-symbols-") as place:
            machine = make(("/usr/bin/cp", "/proc/kallsyms", f"/howdah/out/{_FILE}"), place)
            run(machine, lambda _what, _done, _of: None)
            (directory / _FILE).write_bytes((machine.raw / _FILE).read_bytes())

    entry = cache.build("kallsyms", content_key(_LAYOUT, kernel.image_sha256), ask)
    return SymbolTable(image_functions((entry / _FILE).read_text(encoding="ascii")))


def image_functions(text: str) -> list[Function]:
    """Return the functions in a kallsyms text except those of modules, each reaching to the beginning of the next."""
    by_address: dict[int, str] = {}
    for match in _LINE.finditer(text):
        address, name = int(match["address"], 16), match["name"]
        if address & KERNEL_HALF and by_address.setdefault(address, name).startswith(_PADDING):
            by_address[address] = name
    addresses = sorted(by_address)
    ends = [*addresses[1:], addresses[-1] + _LARGEST_FUNCTION_BYTES] if addresses else []
    return [
        Function(address, min(end - address, _LARGEST_FUNCTION_BYTES), by_address[address])
        for address, end in zip(addresses, ends, strict=True)
    ]


def module_functions(files: Mapping[str, Path], sections: Mapping[str, Mapping[str, int]]) -> SymbolTable:
    """Return the functions of the loaded modules; ``files`` is keyed by module, ``sections`` is the guest's record."""
    return SymbolTable(
        Function(address + function.address, function.size, function.name)
        for module, places in sections.items()
        if module in files  # other code stays without a name
        for section, address in places.items()
        for function in read_functions(files[module], section)
    )


class Names:
    """Resolves an address to domain and symbol: "kernel", "module", "idle" or "user"; an unknown symbol is "?"."""

    def __init__(self, image: SymbolTable, modules: SymbolTable) -> None:
        self._image = image
        self._modules = modules

    def tcp_functions(self) -> list[str]:
        """Return the TCP functions that have symbols of their own; nothing is known of inlined ones."""
        return sorted({match[0] for one in self._image.functions if (match := _TCP.match(one.name))})

    def place(self, address: int) -> tuple[str, str]:
        if not address & KERNEL_HALF:
            return "user", "?"
        if found := self._image.at(address):
            name = found.name.removeprefix(_PADDING)
            return ("idle" if name in IDLE else "kernel"), name
        if found := self._modules.at(address):
            return "module", found.name
        return "kernel", "?"
