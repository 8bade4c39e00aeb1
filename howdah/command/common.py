# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import howdah
from howdah.engine.lab.machine import LAB_FILE
from howdah.errors import HowdahError
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import Profile, load

PROFILES = Path(howdah.__file__).resolve().parents[1] / "profiles"


def add_runs_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="where experiments lie (default: ./runs)"
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def add_jobs_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", "-j", type=int, default=None, metavar="N", help="runs at once (default: one a core)")


def check_jobs(options: argparse.Namespace) -> None:
    """Raise HowdahError for a number of runs at once that makes none."""
    if options.jobs is not None and options.jobs < 1:
        raise HowdahError("--jobs must be at least 1")


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def add_profile_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", help="a profile file, or the name of one in profiles/")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="override a field, e.g. --set path.rate=100Mbit/s; a list ([cubic,reno]) is a sweep; may be repeated",
    )
    parser.add_argument("--quick", action="store_true", help="only what the profile's quick: leaves of its sweep")
    parser.add_argument(
        "--confirm-runs",
        type=int,
        default=None,
        metavar="N",
        help="make a sweep of more than 1000 runs; N is their number, which the refusal gives",
    )
    parser.add_argument("--engine", default=None, help="uml (default), vm, lab or host")
    add_lab_option(parser)
    parser.add_argument(
        "--kernel", default=None, metavar="TREE", help="a kernel source tree, debian-VERSION or debian-newest"
    )


def add_lab_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lab", type=Path, default=None, metavar="FILE", help="the lab file of a lab that is up, for the lab engine"
    )


def use_lab(options: argparse.Namespace) -> None:
    """Name the lab to this process and to those that will make the runs."""
    if options.lab is not None:
        os.environ[LAB_FILE] = str(options.lab.resolve())


def find_profile(name: str) -> Path:
    """A path as given, or a shipped profile by its name without ``.yaml``."""
    given = Path(name)
    if given.exists() or given.suffix in (".yaml", ".yml") or "/" in name:
        return given
    shipped = PROFILES / f"{name}.yaml"
    if shipped.exists():
        return shipped
    names = ", ".join(sorted(file.stem for file in PROFILES.glob("*.yaml")))
    raise HowdahError(f"there is no profile '{name}'", hint=f"Shipped profiles: {names}. Or give the path of a file.")


def load_plans(options: argparse.Namespace) -> tuple[Profile, list[Plan]]:
    """The profile that ``add_profile_options`` asked for, and the plan of each of its runs."""
    use_lab(options)
    kernel = options.kernel
    if kernel is not None and Path(kernel).exists():
        kernel = str(Path(kernel).resolve())
    profile = load(
        find_profile(options.profile), options.overrides, confirmed_runs=options.confirm_runs, quick=options.quick
    )
    return profile, [compile_plan(cell, engine=options.engine, kernel=kernel) for cell in profile.cells()]
