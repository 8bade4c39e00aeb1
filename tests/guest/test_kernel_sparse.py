# SPDX-License-Identifier: Apache-2.0
"""The kernel modules by sparse (byte order, address spaces, locks) and by the compiler's further warnings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from howdah.build.cache import Cache, content_key
from tests.guest.guest_kit import build_or_skip
from tests.guest.kernel_matrix import ingredients

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

MODULES = Path(__file__).parents[2] / "modules"
_PARTS = (
    "howdah_traffic",
    "howdah_slow_start",
    "howdah_receiver",
    "howdah_processor",
    "howdah_hop",
    "howdah_link",
    "howdah_wire",
)
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


@dataclass(frozen=True)
class Checked:
    """What the checks said of a directory of modules, and the modules that it made (relative paths)."""

    warnings: list[str]
    made: list[str]


def check(modules: Path, *further: str) -> Checked:
    """A directory like ours, built against the default kernel with further settings.

    The answer is kept by its contents, as objects are: kernel, sources, compiler, sparse and settings decide it.
    """
    sparse = shutil.which("sparse")
    if sparse is None:
        pytest.skip("sparse is not installed (setup/packages-test.txt)")
    kernel = build_or_skip().kernel
    versions = [
        subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
        for tool in (sparse, "gcc")
    ]
    key = content_key("1", kernel.key, *versions, *CHECKS, *further, *ingredients(modules))
    trees = (f"KDIR={kernel.build_dir}", f"KSRC={kernel.source_dir}")
    jobs = ("-Otarget", f"-j{len(os.sched_getaffinity(0))}")

    def build(directory: Path, _log: Path) -> None:
        out = directory / "out"
        answer = subprocess.run(
            ["make", "-s", *jobs, "-C", str(modules), *CHECKS, *further, *trees, f"OUT={out}"],
            capture_output=True,
            text=True,
            check=False,
        )
        said = answer.stdout + answer.stderr
        assert answer.returncode == 0, said
        lines = [line for line in said.splitlines() if "warning:" in line.lower() or "error:" in line.lower()]
        made = sorted(str(path.relative_to(out)) for path in out.rglob("*.ko"))
        shutil.rmtree(out)
        (directory / "said.json").write_text(json.dumps({"warnings": lines, "made": made}), encoding="utf-8")

    entry = Cache().build("checked-modules", key, build)
    return Checked(**json.loads((entry / "said.json").read_text(encoding="utf-8")))


_PLUG_INS = {path.stem: path for path in sorted((MODULES / "algorithms").glob("ss_*.c"))}
_INCLUDED = re.compile(r'^#include [<"]([\w./]+)[">]', re.MULTILINE)
_IPV6 = re.compile(r"IPV6|INET6|ipv6|in6_")


def knows_ipv6(source: Path) -> bool:
    """Whether the source or one of the project's headers in it has anything that is only for IPv6."""
    text = source.read_text(encoding="utf-8")
    places = (source.parent, MODULES / "include")
    headers = (place / name for name in _INCLUDED.findall(text) for place in places)
    return bool(_IPV6.search(text)) or any(knows_ipv6(header) for header in headers if header.is_file())


def test_there_is_nothing_to_warn_of() -> None:
    checked = check(MODULES)
    assert checked.warnings == []
    assert {Path(name).stem for name in checked.made if name.startswith("algorithms/")} == {*_PLUG_INS}


def test_there_is_nothing_to_warn_of_with_ipv6() -> None:
    """The default kernel has none: what is only for IPv6 would not be looked at. The other plug-ins stay the same."""
    knowing = {name for name, source in _PLUG_INS.items() if knows_ipv6(source)}
    assert knowing
    left_out = f"HOWDAH_LEFT_OUT={' '.join(sorted({*_PLUG_INS} - knowing))}"
    checked = check(MODULES, "KCFLAGS=-DCONFIG_IPV6=1", left_out)
    assert checked.warnings == []
    assert {Path(name).stem for name in checked.made} == {*knowing, *_PARTS}


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
    return check(directory / "modules").warnings
