# SPDX-License-Identifier: Apache-2.0
"""A profile with a module of the user's own runs in a directory of any name, and its report opens there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.any_directory import NAMES, make_directory
from tests.built_modules import build_modules
from tests.guest.guest_kit import build_or_skip
from tests.guest.guest_run import howdah

pytestmark = pytest.mark.guest

PROFILE = """\
howdah: 1
name: mine
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: [mine]
modules: [./modules/tcp_mine.c]
duration: 1 s
"""
MODULE = """\
#include <linux/module.h>
#include <net/tcp.h>
#include "mine.h"
static struct tcp_congestion_ops mine = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.name = NAME,
	.owner = THIS_MODULE,
};
static int __init start(void) { return tcp_register_congestion_control(&mine); }
static void __exit stop(void) { tcp_unregister_congestion_control(&mine); }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""


def write(place: Path) -> Path:
    """The profile and its module; the file of the module."""
    (place / "mine.yaml").write_text(PROFILE)
    (place / "modules").mkdir()
    (place / "modules/mine.h").write_text('#define NAME "mine"\n')
    source = place / "modules/tcp_mine.c"
    source.write_text(MODULE)
    return source


@pytest.mark.parametrize("kind", ["everything", "long"])
def test_a_run_is_made_reported_and_made_again(kind: str, tmp_path: Path) -> None:
    build_or_skip()
    place = make_directory(tmp_path, kind)
    write(place)

    done = howdah("run", "mine.yaml", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    (verdict,) = (place / "runs/mine").glob("mine-*/verdict.json")
    assert json.loads(verdict.read_text())["verdict"] == "pass"
    assert (place / "runs/mine/report.html").stat().st_size > 100_000
    again = howdah("rerun", verdict.parent, "--json", cwd=place)
    assert json.loads(again.stdout)["equal"], again.stderr


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("what", [lambda source: source, lambda source: source.parent], ids=["file", "directory"])
def test_a_module_is_built_from_there(kind: str, what: Callable[[Path], Path], tmp_path: Path) -> None:
    """It is built in the cache, so that the kernel's build never sees the name."""
    kernel = build_or_skip().kernel
    source = write(make_directory(tmp_path, kind))
    (source.parent / "Kbuild").write_text("obj-m := tcp_mine.o\n")
    built = build_modules(kernel, [str(what(source))], lambda *_: None)
    assert "tcp_mine" in {module.name for module in built}


@pytest.mark.parametrize("kind", ["everything", "long"])
def test_a_mistake_is_told_with_the_file_as_it_is_called(kind: str, tmp_path: Path) -> None:
    build_or_skip()
    place = make_directory(tmp_path, kind)
    source = write(place)
    source.write_text(MODULE.replace("tcp_reno_cong_avoid,", "tcp_reno_cong_avoids,"))
    done = howdah("run", "mine.yaml", "--no-report", cwd=place)
    assert done.returncode != 0
    assert "modules/tcp_mine.c:6" in done.stderr
