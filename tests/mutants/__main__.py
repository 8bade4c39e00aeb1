# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.mutants``: a seeded sample of mutants of what decides results, and how many of them tests notice.

mutmut makes the mutants in a copy of the tree, so the tree may change meanwhile.
Each mutant meets those of the tests in ``KILLERS`` that call the function it is in.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutants.outcome import Outcome, read_equivalent

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "var" / "mutants"
TREE = PLACE / "tree"
MADE = TREE / "mutants"
# Packages that are mutated, and the tests that call each in their own process and take little time, as files are named.
KILLERS = {
    "claim": ("claim*", "score"),
    "judge": (
        *("judge*", "host_processor", "kernel_log", "loss_burst", "machines_merge", "ns2_ingest"),
        *("path_tick", "vm_profile"),
    ),
    "measure": ("measure*", "cpu", "host_processor", "http", "metric_table", "ns2_ingest", "qlog", "vm_profile"),
    "plan": (
        *("plan*", "path*", "flow_number", "machines_slice", "ns2_plan", "perturbation", "profile*", "stack"),
        *("topology", "variation", "vm_p*"),
    ),
}
FIRST = {
    "claim": "howdah.claim.judging.x_than_text__mutmut_1",
    "judge": "howdah.judge.check.x_within__mutmut_1",
    "measure": "howdah.measure.capacity.*integral__mutmut_1",
    "plan": "howdah.plan.route.x_*__mutmut_1",
}
COPIED = ("collectors", "docs", "modules", "playbooks", "profiles", "reports", "setup", "stacks", "topologies")
# The first plans every shipped profile, for a minute, and asks of most only that they can be planned; the other reads
# the sources, which mutmut has changed.
LEFT_OUT = (
    "tests/unit/test_plan_golden.py::test_every_shipped_profile_can_be_planned",
    "tests/unit/test_metric_table.py::test_the_code_emits_the_metrics_of_the_table_and_no_others",
)


def main() -> int:
    options = _options()
    chosen = options.only or list(KILLERS)
    _copy(chosen)
    # To try one mutant makes them all, and finds which tests call what.
    _mutmut(FIRST[chosen[0]])
    names = sorted(name for found in _states() for name in found["exit_code_by_key"])
    parts = [_part(package, [name for name in names if _package(name) == package], options) for package in chosen]
    (PLACE / f"seed-{options.seed}.txt").write_text("\n".join(parts))
    sys.stdout.write("\n".join(parts))
    return 0


def _part(package: str, names: list[str], options: argparse.Namespace) -> str:
    """What became of a sample of the mutants of one package."""
    drawn = random.Random(options.seed).sample(names, min(options.sample, len(names)))
    before_s = _used_s()
    _mutmut(*drawn)
    results = {name: code for found in _states() for name, code in found["exit_code_by_key"].items()}
    outcome = Outcome.of({name: results[name] for name in drawn}, TREE, read_equivalent())
    of = f"{package}: {len(names)} mutants, seed {options.seed}, {_used_s() - before_s:.0f} s of a processor"
    return f"{of}\n{outcome.text()}\n"


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sample", type=int, default=100, metavar="N", help="mutants of each package to try (default: 100)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which of them (default: 1)")
    parser.add_argument(
        "--only", action="append", choices=list(KILLERS), help="a package, met by tests of its own; may be repeated"
    )
    return parser.parse_args()


def _package(name: str) -> str:
    return name.split(".")[1]


def _copy(chosen: list[str]) -> None:
    """The tree as it is, with mutmut's settings in its pyproject.toml.

    Mutants of unchanged files stay from the last time: making all takes minutes. Which tests call what is found anew
    where the code has changed; mutmut itself finds it of new tests.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    for left in TREE.rglob("*"):
        if left.is_file() and not left.is_relative_to(MADE) and str(left.relative_to(TREE)) not in names:
            left.unlink()
    changed = 0
    for name in sorted(names):
        (TREE / name).parent.mkdir(parents=True, exist_ok=True)
        if not (TREE / name).is_file() or not filecmp.cmp(ROOT / name, TREE / name, shallow=False):
            shutil.copy2(ROOT / name, TREE / name)
            changed += name.startswith("howdah/")
    if changed:
        (MADE / "mutmut-stats.json").unlink(missing_ok=True)
    shutil.copy2(ROOT / "pyproject.toml", TREE / "pyproject.toml")
    subjects = [subject for package in chosen for subject in KILLERS[package]]
    killers = sorted(
        {str(file.relative_to(TREE)) for each in subjects for file in TREE.glob(f"tests/unit/test_{each}.py")}
    )
    settings = {
        "source_paths": ["howdah"],
        "only_mutate": [f"howdah/{package}/*" for package in KILLERS],
        "also_copy": [*COPIED, "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "README.md", "mkdocs.yml"],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "tests.mutants.shortest", "--hypothesis-profile", "ci"]
        + [word for name in LEFT_OUT for word in ("--deselect", name)],
        "pytest_add_cli_args_test_selection": killers,
        "timeout_constant": 20.0,
        "timeout_multiplier": 8.0,
    }
    with (TREE / "pyproject.toml").open("a") as file:
        # JSON's strings, numbers and lists are also TOML's.
        file.write("\n[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))


def _mutmut(*names: str) -> None:
    command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", "1", *names]
    done = subprocess.run(command, cwd=TREE, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False)
    if done.returncode:
        sys.exit(f"mutmut ended with {done.returncode}")


def _states() -> list[dict[str, dict[str, int | None]]]:
    return [json.loads(file.read_text()) for file in sorted(MADE.glob("howdah/*/*.meta"))]


if __name__ == "__main__":
    sys.exit(main())
