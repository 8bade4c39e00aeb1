# SPDX-License-Identifier: Apache-2.0
"""Fuzz plug-ins for longer: ``python -m tests.decision.fuzz [--seconds 60] [limited search …]``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.decision.build import compiler_for_fuzzing, plug_ins, program
from tests.decision.runner import source_of

CORPUS = Path(__file__).parent / "corpus"
NO_CLANG = "no clang that links libFuzzer (Debian: clang and libclang-rt-dev)"
MOST_BYTES = 400  # of a life
FOUND = Path("var/fuzz")  # lives that led somewhere new, and those that broke something


@dataclass(frozen=True)
class Outcome:
    """What a run of a fuzz target ended with."""

    program: Path
    ok: bool
    report: str  # of libFuzzer and the sanitizers; a broken rule is in the line "BROKEN: …"

    @property
    def story(self) -> list[str]:
        """The life that broke something, in the runner's commands."""
        lines = self.report.splitlines()
        if "--- what was done:" not in lines:
            return []
        begin = lines.index("--- what was done:") + 1
        return lines[begin : lines.index("---", begin)]

    def explain(self) -> str:
        """The broken rule or the sanitizer's report, and the end of the life that led to it."""
        lines = self.report.splitlines()
        telling = [line for line in lines if line.startswith("BROKEN:") or "ERROR:" in line or "runtime error" in line]
        places = [line.strip() for line in lines if "/modules/" in line and " in " in line and "NEW_FUNC" not in line]
        begin, end = self.story[:6], self.story[6:][-25:]
        return "\n".join([self.program.name, *telling[:4], *places[:6], *begin, "…", *end])


def fuzz(target: Path, found: Path, *limits: str) -> Outcome:
    """Run a target; ``limits`` are libFuzzer's (``-runs=3000``). Lives that led somewhere new are kept in ``found``."""
    found.mkdir(parents=True, exist_ok=True)
    command = [
        str(target),
        str(found),
        str(CORPUS),
        f"-max_len={MOST_BYTES}",
        "-len_control=0",
        "-timeout=20",
        "-rss_limit_mb=2048",
        f"-artifact_prefix={found.parent}/{target.name}-",
        *limits,
    ]
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
    )
    return Outcome(target, answer.returncode == 0, answer.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each plug-in (default 60)")
    parser.add_argument("plug_ins", nargs="*", help="all of them without names")
    arguments = parser.parse_args()
    clang = compiler_for_fuzzing()
    if clang is None:
        print(NO_CLANG, file=sys.stderr)  # noqa: T201
        return 1
    FOUND.mkdir(parents=True, exist_ok=True)
    broken = 0
    for name in arguments.plug_ins or plug_ins():
        target = program(source_of(name), FOUND, fuzzer=clang)
        outcome = fuzz(target, FOUND / name, f"-max_total_time={arguments.seconds}")
        print(f"{name}: {'nothing found' if outcome.ok else outcome.explain()}", flush=True)  # noqa: T201
        broken += not outcome.ok
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
