# SPDX-License-Identifier: Apache-2.0
"""Commands where something around them is odd: programs in PATH, TMPDIR, limits, clocks, output, locale, directory.

A command does its work or says what is in its way. None of the false programs' words become howdah's results.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

from tests.faults.bounded import PLAIN, Around, other_user_missing, run_bounded
from tests.faults.sandbox import NAME, Sandbox
from tests.faults.trial import Case, CommandTrials

COMMANDS = (
    *(["--help"], ["list", "runs"], ["list", "profiles"], ["list", "kernels", "--json"], ["plan", "quick"]),
    *(["plan", "quick", "--json"], ["report", NAME, "--reanalyse"], ["report", NAME, "--without-prometheus"]),
    *(["verify", NAME], ["verify", NAME, "--digests-only", "--json"], ["compare", NAME, NAME], ["claims", NAME]),
    *(["export", NAME, "--output", "{out}/flent"], ["export", NAME, "--format", "csv", "--output", "{out}/csv"]),
    *(["pack", NAME, "--output", "{out}/a.howdah.tar.zst"], ["unpack", "{pack}", "{out}/taken-out"]),
    *(["verify", "{pack}"], ["score", NAME], ["figure", NAME, "--output", "{out}/figures"], ["clean"], ["doctor"]),
    *(["doctor", "--json"], ["nightly", "--list"], ["new", "mine", "--output", "{out}/mine.yaml"], ["schema"]),
    *(["rerun", NAME], ["no-such-command"], ["run", "no-such-profile", "--json"], ["list", "stacks"]),
)
_WITH_RUNS = ("report", "verify", "compare", "claims", "export", "pack", "score", "figure", "clean", "rerun", "run")
_FALSE_PROGRAMS = (
    *("cc", "gcc", "ld", "make", "git", "python3", "python", "taskset", "nice", "uname", "ip", "tc", "tar", "zstd"),
    *("xz", "ssh", "ssh-keygen", "minisign", "prometheus", "promtool", "bwrap", "unshare", "mount", "qemu-img"),
    *("qemu-system-x86_64", "ansible-playbook", "dpkg", "dpkg-deb", "apt-get", "ldd", "ccache", "nproc", "tput"),
)
_DOES = {
    "fails": "exit 1",
    "says garbage": "head -c 4000 /dev/urandom; exit 0",
    "says much": "head -c 50000000 /dev/zero; exit 0",
    "says escapes": "printf '\\033[2J\\033]0;x\\007git version 9'; printf '\\033[31mwrong' >&2; exit 3",
    "says nothing": "exit 0",
    "is killed": "kill -9 $$",
    "waits for words": "exec cat",
}
_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
/* CLOCK_REALTIME jumps between two times, at every JUMP_EVERY-th look at it. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	static unsigned int looks;
	int result;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, now);
	if (clock == CLOCK_REALTIME && ++looks / (unsigned int)atoi(getenv("JUMP_EVERY")) % 2)
		now->tv_sec += atol(getenv("JUMP_S"));
	return result;
}
"""
_JUMPS_S = (-3600, 3600, -1_700_000_000, 3_000_000_000, -2_000_000_000, 250_000_000_000)
_OLD_S = (0, 1, -1, 4_000_000_000, 2**33)  # mtimes


class Surroundings(CommandTrials):
    """``make(n)`` is the same for ever: every command meets every kind of surroundings in turn."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.sandbox = sandbox
        self.seed = seed
        self.place = sandbox.root / "around"
        self.out = sandbox.root / "out"
        self.pack = sandbox.root / "good.howdah.tar.zst"
        assert sandbox.reference is not None
        self.place.mkdir()
        status, faults = run_bounded(sandbox, ["pack", str(sandbox.reference), "--output", str(self.pack)])
        if status or faults:
            raise AssertionError(f"the good pack: {status}: {faults} {sandbox.said()}")
        self.shim = self.place / "clock.so"
        (self.place / "clock.c").write_text(_CLOCK)
        compiler = ["gcc", "-shared", "-fPIC", "-o", str(self.shim), str(self.place / "clock.c"), "-ldl"]
        subprocess.run(compiler, check=True)
        self.kinds = {name.removeprefix("_around_"): getattr(self, name) for name in dir(self) if "_around_" in name}

    def make(self, number: int) -> Case:
        chance = random.Random(f"surroundings-{self.seed}-{number}")
        kind = list(self.kinds)[number % len(self.kinds)]
        runs = self.sandbox.runs
        for place in (runs, self.out):
            shutil.rmtree(place, ignore_errors=True)
        self.out.mkdir()
        self.sandbox.copy_reference()
        around: Around = self.kinds[kind](chance)
        words = [word.format(out=self.out, pack=self.pack) for word in chance.choice(COMMANDS)]
        if words[0] in _WITH_RUNS or words[:2] == ["list", "runs"]:
            words += ["--runs", str(runs)]
        return Case(number, kind, f"{around.name}: {' '.join(words[:2])}", {"arguments": words, "around": around}, b"")

    # Each makes surroundings of a kind.

    def _around_path(self, chance: random.Random) -> Around:
        false = self.place / "bin"
        shutil.rmtree(false, ignore_errors=True)
        false.mkdir()
        does = chance.choice(list(_DOES))
        draw = chance.random()
        for name in _FALSE_PROGRAMS:
            if draw < 0.7 or chance.random() < 0.5:
                (false / name).write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{_DOES[does]}\n")
                (false / name).chmod(chance.choice([0o755, 0o755, 0o755, 0o644]))
        path = chance.choice([f"{false}:{os.environ['PATH']}", str(false), "", "/dev/null", str(false / "none"), "\n"])
        return Around(f"PATH whose programs {does}, {path[:40]!r}", {"PATH": path})

    def _around_directory(self, chance: random.Random) -> Around:
        """A directory of a stranger's, in which PATH begins, as it does for those who like ``.`` in it."""
        here = self.place / "here"
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        for name in _FALSE_PROGRAMS:
            (here / name).write_text(f"#!/bin/sh\n: > {self.canary}\n")
            (here / name).chmod(0o755)
        (here / "sitecustomize.py").write_text(f"open({str(self.canary)!r}, 'w')\n")
        path = chance.choice([":{}", ".:{}", "./:{}", "{}"]).format(os.environ["PATH"])
        return Around(f"a stranger's directory, PATH {path[:3]!r}", {"PATH": path}, directory=here)

    def _around_tmpdir(self, chance: random.Random) -> Around:
        odd = self.place / " a\nb ü"
        odd.mkdir(exist_ok=True)
        link, dangling = self.place / "link", self.place / "dangling"
        for each, target in ((link, odd), (dangling, "nowhere")):
            each.unlink(missing_ok=True)
            each.symlink_to(target)
        choices = [
            *(str(self.place / "missing"), "/proc", "/dev/null", str(link), str(odd), str(self.pack), "", "relative"),
            *(str(dangling), "/sys/kernel", "x" * 5000, f"{self.place}/{'y' * 250}", "/dev/full"),
        ]
        names = chance.choice([("TMPDIR",), ("TMPDIR", "XDG_RUNTIME_DIR", "HOWDAH_MEMORY_DIR"), ("XDG_RUNTIME_DIR",)])
        where = chance.choice(choices)
        return Around(f"{'+'.join(names)} is {where[-30:]!r}", dict.fromkeys(names, where))

    def _around_limit(self, chance: random.Random) -> Around:
        limit = chance.choice(
            [
                *("--nofile=20", "--nofile=32", "--nofile=64", "--as=300000000", "--as=600000000", "--as=1200000000"),
                *("--fsize=0", "--fsize=100", "--fsize=5000", "--fsize=1000000", "--stack=200000", "--stack=1000000"),
                *("--nproc=1", "--nproc=3", "--cpu=600", "--core=0", "--memlock=0", "--sigpending=0", "--rttime=1"),
            ]
        )
        other = limit.startswith("--nproc")  # it does not bind root
        if other and other_user_missing():
            limit, other = "--nofile=40", False
        heard = limit not in ("--fsize=0", "--fsize=100")  # what a command says goes to a file, which holds no message
        return Around(limit, limits=(limit,), other_user=other, is_heard=heard)

    def _around_clock(self, chance: random.Random) -> Around:
        if chance.random() < 0.4:
            when = chance.choice(_OLD_S)
            for file in sorted(self.sandbox.runs.rglob("*")):
                if chance.random() < 0.7:
                    os.utime(file, (when, when))
            return Around(f"files of second {when}")
        jump, every = chance.choice(_JUMPS_S), chance.choice([1, 3, 50])
        shim: dict[str, str | None] = {"LD_PRELOAD": str(self.shim), "JUMP_S": str(jump), "JUMP_EVERY": str(every)}
        return Around(f"a clock that jumps by {jump} s after {every} looks", shim)

    def _around_output(self, chance: random.Random) -> Around:
        redirect = chance.choice(
            [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full", ">/dev/full 2>&1", "1<&0"]
        )
        return Around(f"output {redirect}", redirect=redirect, is_heard="2>" not in redirect)

    def _around_locale(self, chance: random.Random) -> Around:
        ascii_only: dict[str, str | None] = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        return chance.choice(
            [
                Around("ASCII", ascii_only),
                Around("POSIX", {**ascii_only, "LC_ALL": "POSIX", "LANG": ""}),
                Around("ASCII streams", {"PYTHONIOENCODING": "ascii"}),
                Around("ASCII, strict", {"PYTHONIOENCODING": "ascii:strict"}),
                Around("Latin 1", {"PYTHONIOENCODING": "latin-1"}),
                Around("no such locale", {"LC_ALL": "xx_YY.UTF-8", "LANG": "\x1b[31m"}),
                Around("a Turkish time", {"LC_ALL": None, "LANG": "tr_TR.UTF-8", "TZ": "Asia/Nowhere"}),
                Around("a zone that is none", {"TZ": "\x1b]0;x\x07/../../etc/passwd"}),
            ]
        )

    def _around_variable(self, chance: random.Random) -> Around:
        value = chance.choice(
            [
                "",
                "0",
                "-1",
                "1",
                "9" * 30,
                "a\x1b[2Jb",
                "/dev/null",
                "/dev/full",
                "\udcff",
                "x" * 100_000,
                "/proc/self",
                "~",
            ]
        )
        name = chance.choice(
            [
                *("COLUMNS", "LINES", "HOME", "USER", "SHELL", "TERM", "HOWDAH_CACHE", "HOWDAH_RUNS", "HOWDAH_TLS"),
                *("XDG_CACHE_HOME", "XDG_STATE_HOME", "HOWDAH_SCHEDULER", "OMP_NUM_THREADS", "NO_COLOR", "EDITOR"),
                *("SOURCE_DATE_EPOCH", "GIT_DIR", "PAGER", "MPLCONFIGDIR", "CFLAGS", "CC", "MAKEFLAGS", "PWD"),
            ]
        )
        other: dict[str, str | None] = {name: None if chance.random() < 0.1 else value}
        if name.startswith("XDG_CACHE"):
            other["HOWDAH_CACHE"] = None
        return Around(f"{name} is {value[:20]!r}", other)

    @property
    def canary(self) -> Path:
        return self.sandbox.root / "canary"

    def tried(self, case: Case) -> tuple[bool, list[str]]:
        around: Around = case.request["around"]
        if around.other_user:
            for place in (self.sandbox.runs, self.out, self.sandbox.root, *self.sandbox.root.rglob("*")):
                if not place.is_symlink() and "cache" not in place.parts[3:4]:
                    os.chown(place, 65534, 65534)
        before = self._seen()
        status, faults = run_bounded(
            self.sandbox, case.request["arguments"], space_bytes=None, around=around, module=PLAIN
        )
        if self.canary.exists():
            faults.append("a program of the directory ran")
            self.canary.unlink()
        told = {str(self.sandbox.root / (around.environment.get("HOWDAH_CACHE") or "."))}  # a relative one is made here
        if new := sorted(self._seen() - before - told):
            faults.append(f"written outside of where it was told to: {new[:3]}")
        faults += [*self.sandbox.at_once(), *self.sandbox.left()]
        self.sandbox.clear_left()
        return status != 0, faults

    def _seen(self) -> set[str]:
        return {str(entry) for entry in (*self.sandbox.root.iterdir(), *self.place.iterdir())} - {str(self.canary)}
