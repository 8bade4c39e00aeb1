# SPDX-License-Identifier: Apache-2.0
"""A whole command within bounds of memory and time, in surroundings of one's choice; and what it did wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from howdah.command.parser import EXIT_CODES
from tests.faults.sandbox import Sandbox

LIMIT_S = 120.0
MOST_RESIDENT_BYTES = 1 << 30
_SPACE_BYTES = 4 << 30
_RECORDED, PLAIN = "tests.faults.recorded_command", "howdah.command.main"
_TRACEBACK = re.compile("Traceback|MemoryError|Fatal Python error|Exception ignored|Segmentation fault")
_OURS = re.compile(r"^(?:howdah\b|usage: howdah\b)", re.MULTILINE)
_IN_WORDS = (1, 2, 3, 4)  # what ends so says why in a line of howdah's

_READ_LATER = frozenset(
    (
        *("PATH", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOWDAH_MEMORY_DIR", "HOWDAH_CACHE"),
        *("HOWDAH_RUNS", "HOWDAH_TLS", "HOWDAH_SCHEDULER", "COLUMNS", "LINES", "USER", "SHELL", "TERM", "NO_COLOR"),
        *("EDITOR", "PAGER", "SOURCE_DATE_EPOCH", "GIT_DIR", "CFLAGS", "CC", "MAKEFLAGS", "PWD"),
    )
)


@dataclass(frozen=True)
class Around:
    """``redirect`` is a shell's, ``limits`` are prlimit's; None takes a variable away."""

    name: str = "as it is"
    environment: dict[str, str | None] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    redirect: str = ""
    directory: Path | None = None
    other_user: bool = False
    is_heard: bool = True  # whether what the command says can be seen

    @property
    def is_for_a_fork(self) -> bool:
        """Whether a process that has loaded howdah meets all of it: nothing is read while Python starts."""
        others = (self.limits, self.redirect, self.directory, self.other_user)
        return not any(others) and self.environment.keys() <= _READ_LATER


NOTHING = Around()


def as_other_user() -> list[str]:
    """Words before a command that runs it as nobody, who may read what root may: the interpreter may be root's own."""
    may = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *may]


def other_user_missing() -> str | None:
    """Why no command can be run as another user; None where it can."""
    return None if os.geteuid() == 0 else "only root runs commands as another user"


def command_in(
    sandbox: Sandbox, arguments: list[str], around: Around, module: str = PLAIN, space_bytes: int | None = None
) -> tuple[list[str], dict[str, str], Path]:
    """The words, the environment and the directory of ``howdah ARGUMENTS``."""
    limits = [*around.limits, *([] if space_bytes is None else [f"--as={space_bytes}"])]
    words = [
        *(as_other_user() if around.other_user else []),
        *(["prlimit", *limits] if limits else []),
        *(["sh", "-c", f'exec "$@" {around.redirect}', "sh"] if around.redirect else []),
        *(sys.executable, "-P", "-m", module, *arguments),
    ]
    wanted = {**sandbox.environment, **around.environment}
    return words, {name: value for name, value in wanted.items() if value is not None}, around.directory or sandbox.root


def run_bounded(
    sandbox: Sandbox,
    arguments: list[str],
    space_bytes: int | None = _SPACE_BYTES,
    limit_s: float = LIMIT_S,
    around: Around = NOTHING,
    module: str = _RECORDED,
) -> tuple[int, list[str]]:
    """The command's status, and what it did that none may do."""
    named = " ".join(arguments[:2])
    said_file = sandbox.root / "said.txt"
    if sandbox.starter is not None and around.is_for_a_fork:
        forked = sandbox.fork(
            arguments,
            limits={} if space_bytes is None else {"RLIMIT_AS": space_bytes},
            recorded=module == _RECORDED,
            around=around.environment,
        )
        hung = False
        try:
            forked.wait(limit_s)
        except subprocess.TimeoutExpired:
            hung = True
            forked.kill()
        status = forked.wait()
        resident_bytes = forked.resident_bytes
    else:
        status, resident_bytes, hung = _run(sandbox, arguments, space_bytes, limit_s, around, module)
    faults = [f"'{named}' did not end in {limit_s:g} s"] if hung else []
    if not hung:
        text = said_file.read_bytes().decode(errors="replace")
        faults += faults_in(named, status, text if around.is_heard else None)
    if space_bytes is not None and resident_bytes > MOST_RESIDENT_BYTES:
        faults.append(f"'{named}' used {resident_bytes >> 20} MiB")
    return status, faults


def _run(
    sandbox: Sandbox, arguments: list[str], space_bytes: int | None, limit_s: float, around: Around, module: str
) -> tuple[int, int, bool]:
    """A process of its own: its status, its largest memory, and whether it had to be killed."""
    words, environment, directory = command_in(sandbox, arguments, around, module, space_bytes)
    said_file = sandbox.root / "said.txt"
    with said_file.open("wb") as said:
        process = subprocess.Popen(
            words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    _, status, used = os.wait4(process.pid, 0)
    hung = not timer.is_alive()
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_maxrss * 1024, hung


def faults_in(named: str, status: int, text: str | None) -> list[str]:
    """What is wrong with how a command ended, and with what it said; ``text`` is None where that went nowhere."""
    faults = []
    if status not in EXIT_CODES:
        faults.append(f"'{named}' ended with {status}: {(text or '')[-500:]}")
    if text is None:
        return faults
    if _TRACEBACK.search(text):
        faults.append(f"'{named}': a traceback: {text[-1200:]}")
    if odd := [char for char in text if (ord(char) < 32 and char not in "\n\t") or 0x7F <= ord(char) < 0xA0]:
        faults.append(f"'{named}' prints {odd[0]!r}")
    if status in _IN_WORDS and not _OURS.search(text):
        faults.append(f"'{named}' ended with {status} without a word of howdah's: {text[-500:]!r}")
    return faults
