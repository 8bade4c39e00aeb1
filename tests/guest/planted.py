# SPDX-License-Identifier: Apache-2.0
"""``make planted``: a git repository of Debian's kernel, a regression planted in it, and ``howdah bisect`` to find it.

It takes a kernel build and some minutes more, too long for every test run. Everything lies in a scratch directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from howdah.build.cache import Cache
from howdah.build.kernel_source import provide_source, unpack_command
from howdah.command.main import main

PROFILE = """\
# SPDX-License-Identifier: Apache-2.0
howdah: 1
name: hystart
path: {rate: 20 Mbit/s, rtt: 60 ms, buffer: 2 bdp}
algorithm: cubic
duration: 3 s
repetitions: 3
collect: {tcp_info: 100 ms, qdisc: 20 ms, interfaces: off}
claims:
  - id: leaves-in-time
    says: HyStart leaves slow start before the window is half as large again as the path needs.
    value: {metric: exit_cwnd_bdp}
    expect: {at_most: 1.5}
"""
LEAST = "static int hystart_low_window __read_mostly = 16;"
NAMED = LEAST.replace("16", "LOW_WINDOW")
# File, what is replaced, by what (appended where nothing is replaced), subject. The third does not compile.
COMMITS = (
    ("tcp_vegas.c", "", "\n/* Vegas compares rates once a round trip. */\n", "tcp_vegas: say how often it compares"),
    ("tcp_cong.c", "", "\n/* See RFC 5681 for the terms. */\n", "tcp_cong: point to the terms"),
    ("tcp_cubic.c", LEAST, NAMED, "tcp_cubic: give HyStart's least window a name"),
    ("tcp_cubic.c", NAMED, f"#define LOW_WINDOW 16\n{NAMED}", "tcp_cubic: define the name, too"),
    ("tcp_cubic.c", "LOW_WINDOW 16\n", "LOW_WINDOW 1600\n", "tcp_cubic: HyStart for large windows only"),
    ("tcp_illinois.c", "", "\n/* Illinois reacts to delay as well as to loss. */\n", "tcp_illinois: a remark"),
)
PLANTED = 4  # index of the commit that is to be found


def _git(tree: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    options = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "gc.auto=0")
    command = ["git", "-C", str(tree), *options, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def plant(tree: Path) -> list[str]:
    """Unpack Debian's 6.12 into ``tree`` and commit it, then COMMITS; returns the hashes of all, the oldest first."""
    source = provide_source("debian-6.12", lambda _what, _done, _total: None, Cache())
    assert source.archive is not None
    tree.mkdir(parents=True)
    subprocess.run(unpack_command(source.archive, tree), check=True)
    _git(tree, "init", "--quiet", "--initial-branch=main")
    _git(tree, "add", "--all", "--force")  # Debian's .gitignore names everything
    _git(tree, "commit", "--quiet", "--message", f"{source.description} as Debian has it")
    hashes = [_git(tree, "rev-parse", "HEAD")]
    for name, old, new, subject in COMMITS:
        file = tree / "net/ipv4" / name
        text = file.read_text(encoding="utf-8")
        if old not in text:
            raise SystemExit(f"{file} is not as it was: {old!r} is not in it")
        file.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
        _git(tree, "commit", "--quiet", "--all", "--message", subject)
        hashes.append(_git(tree, "rev-parse", "HEAD"))
    return hashes


def run() -> int:
    """0 if the planted commit is found."""
    with tempfile.TemporaryDirectory(prefix="howdah-planted-") as name:
        root = Path(name)
        hashes = plant(root / "linux")
        profile = root / "hystart.yaml"
        profile.write_text(PROFILE, encoding="utf-8")
        words = ["bisect", "--tree", str(root / "linux"), "--good", hashes[0], "--bad", hashes[-1]]
        code = main([*words, "--profile", str(profile), "--claim", "leaves-in-time", "--runs", str(root / "runs")])
        log = (root / "runs/hystart-bisect/bisect.log").read_text(encoding="utf-8") if code == 0 else ""
    found = f"# first bad commit: [{hashes[PLANTED + 1]}]" in log
    sys.stdout.write("the planted commit was found\n" if found else "the planted commit was NOT found\n")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(run())
