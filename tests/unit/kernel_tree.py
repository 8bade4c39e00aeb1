# SPDX-License-Identifier: Apache-2.0
"""The outline of a kernel tree that ``make`` can "compile": an object is its sources put together.

Like Kbuild it goes by times of change, keeps a .cmd file for each object, and prints a line for each it compiles.
"""

from __future__ import annotations

from pathlib import Path

from howdah.build.kernel_make import read_wanted

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 99
SUBLEVEL = 1
EXTRAVERSION = -rc2

allnoconfig:
	@echo "  configured"
	@mkdir -p $(O)/include/config $(O)/net/ipv4 $(O)/scripts
	@cmp -s $(KCONFIG_ALLCONFIG) $(O)/.config || cp $(KCONFIG_ALLCONFIG) $(O)/.config
	@test -e $(O)/include/config/kernel.release || echo 6.99.1-rc2 > $(O)/include/config/kernel.release

linux: $(O)/net/ipv4/cubic.o $(O)/net/ipv4/tcp.o
	@cat $^ > $(O)/linux
	@echo "flags $(KCFLAGS) version $(LOCALVERSION)" >> $(O)/linux

$(O)/net/ipv4/%.o: net/ipv4/%.c include/net/tcp.h
	@echo "  CC      net/ipv4/$*.o"
	@if grep -n BROKEN $<; then echo "$(CURDIR)/$<:3:1: error: it is broken" >&2; exit 1; fi
	@if [ -e HOLD ]; then echo half > $@; sleep 60; fi
	@cat $< include/net/tcp.h > $@
	@printf 'deps_$@ := \\\\\\n  $(CURDIR)/include/net/tcp.h \\\\\\n\\n' > $(dir $@).$*.o.cmd

ifdef M
modules:
	@printf 'name=probe\\0vermagic=6.99.1-rc2 mod_unload \\0' > $(M)/probe.ko
	@echo "  LD [M]  probe.ko"
else
modules: linux
	@test -e $(O)/Module.symvers || echo tcp_ack > $(O)/Module.symvers
endif

modules_prepare:
"""


def write_tree(root: Path) -> Path:
    """While the file ``hold`` is beside the tree, compiling stops in the middle of an object."""
    files = {
        "Makefile": MAKEFILE.replace("HOLD", str(root.parent / "hold")),
        "Kconfig": "",
        "arch/um/Makefile": "",
        "net/ipv4/tcp.c": "tcp one\n",
        "net/ipv4/cubic.c": "cubic one\n",
        "include/net/tcp.h": "header one\n",
        "drivers/gpu/drm/driver.c": "no guest has it\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def image_of(*, tcp: str = "tcp one", cubic: str = "cubic one", header: str = "header one") -> str:
    """What the tree above is compiled to."""
    return f"{cubic}\n{header}\n{tcp}\n{header}\nflags -mcmodel=small version \n"


def wanted() -> str:
    return read_wanted((6, 99)).fragment()
