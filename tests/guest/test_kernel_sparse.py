# SPDX-License-Identifier: Apache-2.0
"""The kernel modules by sparse (byte order, address spaces, locks) and by the compiler's further warnings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.guest.guest_kit import build_or_skip

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

MODULES = Path(__file__).parents[2] / "modules"
_PARTS = ("howdah_traffic", "howdah_slow_start", "howdah_receiver", "howdah_processor", "howdah_wire")
CHECKS = ("W=1", "C=2", "CF=-D__CHECK_ENDIAN__")
_WRONG = """\
// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(lock);

static int __init load(void)
{
	__be32 address = 1;

	spin_lock(&lock);
	return address != 0;
}
module_init(load);

int is_declared_nowhere(void)
{
	return 0;
}

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("what the checks must find");
"""


def warnings(modules: Path, out: Path, *further: str) -> list[str]:
    """What the checks say of a directory like ours, built against the default kernel with further settings."""
    if shutil.which("sparse") is None:
        pytest.skip("sparse is not installed (setup/packages-test.txt)")
    kernel = build_or_skip().kernel
    trees = (f"KDIR={kernel.build_dir}", f"KSRC={kernel.source_dir}", f"OUT={out}")
    jobs = ("-Otarget", f"-j{len(os.sched_getaffinity(0))}")
    answer = subprocess.run(
        ["make", "-s", *jobs, "-C", str(modules), *CHECKS, *further, *trees],
        capture_output=True,
        text=True,
        check=False,
    )
    said = answer.stdout + answer.stderr
    assert answer.returncode == 0, said
    return [line for line in said.splitlines() if "warning:" in line.lower() or "error:" in line.lower()]


_PLUG_INS = {path.stem: path for path in sorted((MODULES / "algorithms").glob("ss_*.c"))}
_INCLUDED = re.compile(r'^#include [<"]([\w./]+)[">]', re.MULTILINE)
_IPV6 = re.compile(r"IPV6|INET6|ipv6|in6_")


def knows_ipv6(source: Path) -> bool:
    """Whether the source or one of the project's headers in it has anything that is only for IPv6."""
    text = source.read_text(encoding="utf-8")
    places = (source.parent, MODULES / "include")
    headers = (place / name for name in _INCLUDED.findall(text) for place in places)
    return bool(_IPV6.search(text)) or any(knows_ipv6(header) for header in headers if header.is_file())


def test_there_is_nothing_to_warn_of(tmp_path: Path) -> None:
    assert warnings(MODULES, tmp_path / "out") == []
    assert {path.stem for path in (tmp_path / "out/algorithms").glob("ss_*.ko")} == {*_PLUG_INS}


def test_there_is_nothing_to_warn_of_with_ipv6(tmp_path: Path) -> None:
    """The default kernel has none: what is only for IPv6 would not be looked at. The other plug-ins stay the same."""
    knowing = {name for name, source in _PLUG_INS.items() if knows_ipv6(source)}
    assert knowing
    left_out = f"HOWDAH_LEFT_OUT={' '.join(sorted({*_PLUG_INS} - knowing))}"
    assert warnings(MODULES, tmp_path / "out", "KCFLAGS=-DCONFIG_IPV6=1", left_out) == []
    assert {path.stem for path in (tmp_path / "out").rglob("*.ko")} == {*knowing, *_PARTS}


@pytest.mark.parametrize("about", ["incorrect type in initializer", "wrong count at exit", "no previous prototype"])
def test_what_is_wrong_is_found(about: str, wrong: list[str]) -> None:
    assert any("ss_wrong.c" in line and about in line for line in wrong), wrong


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The warnings of the same directory with one bad plug-in in place of all others."""
    directory = tmp_path_factory.mktemp("wrong")
    others = shutil.ignore_patterns("ss_*", "*.o", "*.ko", ".*.cmd")
    shutil.copytree(MODULES, directory / "modules", ignore=others)
    (directory / "modules/algorithms/ss_wrong.c").write_text(_WRONG, encoding="utf-8")
    return warnings(directory / "modules", directory / "out")
