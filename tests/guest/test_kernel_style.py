# SPDX-License-Identifier: Apache-2.0
"""The kernel modules in the kernel's own style, by the kernel's own checker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from howdah.build.cache import Cache, content_key
from howdah.build.uml_kernel import build_kernel
from tests import remembered
from tests.guest.guest_run import ignore, require_engine

pytestmark = pytest.mark.guest

ROOT = Path(__file__).parents[2]
# A module for many kernels asks for their version; the socket's operations are copied to be changed.
NOT_FOR_US = "LINUX_VERSION_CODE,CONSTANT_COMPARISON,CONST_STRUCT,FILE_PATH_CHANGES"
# TRACE_EVENT() is written unlike any other macro, in the kernel too.
NOT_FOR_TRACE = "OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT"
# The arguments of its macro are names to declare: using one twice has no side effect.
NOT_FOR_PARAMETER = "MACRO_ARG_REUSE"
# The kernel's own name of a queueing discipline, which the checker knows only in the kernel's tree.
NOT_FOR_QDISC = "CAMELCASE"
NOT_FOR = {
    "trace.h": NOT_FOR_TRACE,
    "slow_start_parameter.h": NOT_FOR_PARAMETER,
    **dict.fromkeys(
        (
            "receiver.h",
            "qdisc.c",
            "backlog.c",
            "processor.h",
            "link.h",
            "wire.h",
            "wire_qdisc.c",
            "wire_line.c",
            "wire_ring.c",
        ),
        NOT_FOR_QDISC,
    ),
}


def _check(source: Path, cache: Cache) -> bool:
    """Have the checker say nothing of a file, unless it has been silent about the same file before; whether it ran."""
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("checkpatch.pl needs perl")
    require_engine()
    kernel = build_kernel("debian-6.12", ignore)
    script = kernel.source_dir / "scripts" / "checkpatch.pl"
    ignored = ",".join([NOT_FOR_US, *filter(None, [NOT_FOR.get(source.name)])])
    options = ["--no-tree", "--strict", "--terse", "--max-line-length=120", f"--ignore={ignored}", "--file"]
    version = subprocess.run([perl, "-e", "print $^V"], capture_output=True, text=True, check=True).stdout

    def check() -> None:
        command = [perl, str(script), *options, str(source)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=script.parents[1])
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert answer.stdout == ""

    key = content_key(kernel.key, version, *options, source.name, source.read_bytes())
    return remembered.once("checked-style", key, check, says=source.name, cache=cache)


@pytest.mark.parametrize(
    "source",
    [
        *sorted((ROOT / "modules").rglob("*.[ch]")),
        *sorted((ROOT / "howdah/build").glob("replace.[ch]")),
        ROOT / "docs/examples/tcp_mine.c",
    ],
    ids=lambda path: path.name,
)
def test_checkpatch_has_nothing_to_say(source: Path) -> None:
    _check(source, Cache())


def test_a_file_that_has_changed_is_checked_again_until_it_is_in_order(tmp_path: Path) -> None:
    source, cache = tmp_path / "looked_at.c", Cache(tmp_path / "cache")
    text = "// SPDX-License-Identifier: GPL-2.0-only\nint looked_at;\n"
    source.write_text(text.replace(";", "; "), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(AssertionError, match="trailing whitespace"):
            _check(source, cache)
    source.write_text(text, encoding="utf-8")
    assert _check(source, cache)
    assert not _check(source, cache)
