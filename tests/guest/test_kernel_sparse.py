# SPDX-License-Identifier: Apache-2.0
"""The kernel modules by sparse (byte order, address spaces, locks) and by the compiler's further warnings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.guest.guest_kit import build_or_skip

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

MODULES = Path(__file__).parents[2] / "modules"
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
    answer = subprocess.run(
        ["make", "-s", "-C", str(modules), *CHECKS, *further, *trees], capture_output=True, text=True, check=False
    )
    said = answer.stdout + answer.stderr
    assert answer.returncode == 0, said
    return [line for line in said.splitlines() if "warning:" in line.lower() or "error:" in line.lower()]


# The default kernel has no IPv6, so that what is only for IPv6 would not be looked at.
@pytest.mark.parametrize("flags", ["", "-DCONFIG_IPV6=1"], ids=["ipv4", "ipv6"])
def test_there_is_nothing_to_warn_of(flags: str, tmp_path: Path) -> None:
    assert warnings(MODULES, tmp_path / "out", f"KCFLAGS={flags}") == []
    assert {path.stem for path in (tmp_path / "out/algorithms").glob("ss_*.ko")} == {
        path.stem for path in (MODULES / "algorithms").glob("ss_*.c")
    }


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
