# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from howdah.cluster.place import Place, read_place
from howdah.command.parser import section
from howdah.engine.machines.machine import MACHINES_FILE
from howdah.errors import UsageError
from howdah.profile import Profile, load
from howdah.work.catalogue import find_profile
from howdah.work.compiled import Plans, compile_plans

RESULTS = "where results are, and how they are shown"
WHICH = "which runs"
MAKING = "how runs are made"


def add_runs_option(parser: argparse.ArgumentParser) -> None:
    section(parser, RESULTS).add_argument(
        "--runs",
        type=Path,
        default=Path(os.environ.get("HOWDAH_RUNS") or "runs"),
        metavar="DIR",
        help="directory of experiments (default: $HOWDAH_RUNS, or ./runs)",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    section(parser, RESULTS).add_argument("--json", action="store_true", help="print one JSON object instead of text")


def add_trust_option(parser: argparse.ArgumentParser) -> None:
    section(parser, MAKING).add_argument(
        "--trust",
        action="store_true",
        help="rerun what others made even if it names modules, kernels or programs: this runs the sender's code",
    )


def add_set_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup, text: str) -> None:
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="FIELD=VALUE", help=text)


def add_jobs_option(parser: argparse.ArgumentParser) -> None:
    section(parser, MAKING).add_argument(
        "--jobs", "-j", type=int, metavar="N", help="parallel runs (default: one per core)"
    )


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    group = section(parser, MAKING)
    group.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="have the workers of this Dask scheduler make the runs: tcp://HOST:8786 (default: $HOWDAH_SCHEDULER)",
    )
    group.add_argument(
        "--cluster",
        metavar="KIND",
        help="start workers for this command: local, local:N, ssh:hosts.txt or slurm:cluster.yaml",
    )
    group.add_argument(
        "--tls",
        type=Path,
        metavar="DIR",
        help="directory of the cluster's certificates, made by 'howdah cluster certificates' (default: $HOWDAH_TLS)",
    )
    group.add_argument(
        "--store",
        metavar="URL",
        help="exchange finished runs with a cluster's workers through this store: file:///DIR, s3://BUCKET",
    )


def workers_of(options: argparse.Namespace) -> Place:
    """Return where the runs are to be made. Raise HowdahError if the options name no valid place."""
    return read_place(options.scheduler, options.cluster, options.tls, options.store)


def check_jobs(options: argparse.Namespace) -> None:
    """Raise UsageError for --jobs below 1."""
    if options.jobs is not None and options.jobs < 1:
        raise UsageError("--jobs must be at least 1")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def add_profile_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", help="a profile file, or a name that 'howdah list profiles' shows")
    which = section(parser, WHICH)
    add_set_option(
        which, "override a field, e.g. --set path.rate=100Mbit/s; a list ([cubic,reno]) is a sweep; may be repeated"
    )
    which.add_argument(
        "--split",
        dest="overrides",
        action="append_const",
        const="split=true",
        help="run senders and receivers in separate kernels, each on its own processor; the same as --set split=true",
    )
    which.add_argument("--quick", action="store_true", help="only the subset in the profile's quick: section")
    which.add_argument(
        "--unknowns",
        action="store_true",
        help="also run the grid of values that the profile's source does not specify (unknown:)",
    )
    which.add_argument(
        "--confirm-runs",
        type=int,
        metavar="N",
        help="allow a sweep of more than 1000 runs; N must match the count in the error",
    )
    making = section(parser, MAKING)
    making.add_argument("--engine", metavar="NAME", help="uml (default), vm, machines, host or ns2")
    add_machines_option(parser)
    making.add_argument("--kernel", metavar="TREE", help="a kernel source tree, debian-VERSION or debian-newest")


def add_machines_option(parser: argparse.ArgumentParser) -> None:
    section(parser, MAKING).add_argument(
        "--machines",
        type=Path,
        metavar="FILE",
        help="machines file of the running machines, for the machines engine",
    )


def use_machines(options: argparse.Namespace) -> None:
    """Set the machines file in the environment, for this process and for those that will make the runs."""
    if options.machines is not None:
        os.environ[MACHINES_FILE] = str(options.machines.resolve())


def load_plans(options: argparse.Namespace) -> tuple[Profile, Plans]:
    """Load the profile that the options of ``add_profile_options`` name, and compile the plan of each of its runs."""
    use_machines(options)
    kernel = options.kernel
    if kernel is not None and Path(kernel).exists():
        kernel = str(Path(kernel).resolve())
    if options.unknowns and options.quick:
        raise UsageError("the quick subset has no grid of unknown values", hint="Leave out --quick or --unknowns.")
    profile = load(
        find_profile(options.profile),
        options.overrides,
        confirmed_runs=options.confirm_runs,
        quick=options.quick,
        unknowns=options.unknowns,
    )
    return profile, compile_plans(profile, engine=options.engine, kernel=kernel)
