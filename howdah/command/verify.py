# SPDX-License-Identifier: Apache-2.0
"""``howdah verify``: check that runs are unchanged and that their results follow from their records."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from howdah.command.answer import answer
from howdah.command.common import add_jobs_option, add_json_option, add_runs_option, add_trust_option, check_jobs, cores
from howdah.command.shape import CommandAnswer
from howdah.errors import ExitCode, HowdahError
from howdah.layout import fitted, write_stdout
from howdah.pack.archive import SUFFIX
from howdah.pack.pack import check_page, unpack
from howdah.record.digest import MANIFEST
from howdah.record.model import FilePart
from howdah.scratch import scratch
from howdah.verify.compiled import check_plan
from howdah.verify.experiment import runs_below, verify_experiment
from howdah.verify.finding import DIFFERS, DIGESTS_ONLY, UNCHECKED, VERIFIED, Discrepancy, Report, State
from howdah.verify.run import PREFIX, rerun_run, verify_run
from howdah.verify.signature import check_signature
from howdah.work.display import Display
from howdah.work.experiment import find
from howdah.work.pool import pool

_SIGNS = {VERIFIED: "✓", DIGESTS_ONLY: "–", DIFFERS: "✕", UNCHECKED: "?"}
_ORDER = (VERIFIED, DIGESTS_ONLY, UNCHECKED, DIFFERS)
_MOST_SHOWN = 20
_SIGNATURE = " (signature)"


class Verified(FilePart):
    path: str
    state: State
    checked: list[str]
    findings: list[Discrepancy]
    gaps: list[str]
    notes: list[str]
    claimed: list[str]
    computed: bool


class Verify(CommandAnswer, shape="verify"):
    verified: bool
    reports: list[Verified]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", default=["latest"], help="runs, experiments or packs (default: latest)")
    level = parser.add_mutually_exclusive_group()
    level.add_argument("--digests-only", action="store_true", help="compare files with their digests; compute nothing")
    level.add_argument("--rerun", action="store_true", help="also make every run again and compare")
    add_trust_option(parser)
    parser.add_argument("--signature", action="store_true", help="require a signature, and check it")
    parser.add_argument(
        "--allowed-signers", type=Path, metavar="FILE", help="require an ssh signature by one of these (ssh-keygen(1))"
    )
    parser.add_argument("--public-key", type=Path, metavar="FILE", help="require a signature by this minisign key")
    add_jobs_option(parser)
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    check_jobs(options)
    with scratch(PREFIX) as place:
        return _execute(options, place)


def _execute(options: argparse.Namespace, place: Path) -> int:
    packs: dict[str, str] = {}  # name of a pack by the path it is unpacked to
    paths = [path for name in options.what for path in _paths(options, name, place, packs)]
    signed = options.signature or options.allowed_signers is not None or options.public_key is not None
    reports: list[Report] = []
    with Display(quiet=options.json) as display:
        for path in paths:
            reports += _verify(path, options, display, place)
            if str(path.parent) in packs and not options.digests_only:
                check_page(path, reports)
            if signed:
                reports.append(_signature(path, options))
            elif (path / MANIFEST).exists():
                reports[0].notes.append("it is signed: --allowed-signers or --public-key checks the signature")
    for report in reports:
        for unpacked, name in packs.items():
            report.path = report.path.replace(unpacked, name, 1)
    states = [report.state for report in reports]
    code = ExitCode.DIFFERS if DIFFERS in states else ExitCode.INVALID if UNCHECKED in states or not states else 0
    if options.json:
        shown = [Verified(state=report.state, **vars(report)) for report in reports]
        answer(Verify(verified=set(states) == {VERIFIED}, reports=shown))
    else:
        write_stdout(fitted(_text(reports, states)))
    return code


def _paths(options: argparse.Namespace, name: str, place: Path, packs: dict[str, str]) -> list[Path]:
    """Return the directory of an experiment or run, or the experiments of a pack, unpacked to a temporary directory."""
    if not Path(name).is_file():
        if name.endswith(SUFFIX) and not Path(name).exists():
            raise HowdahError("there is no such pack", where=name, hint="'howdah pack' writes one.")
        return [find(options.runs, name)]
    unpacked = place / str(len(packs)) / Path(name).name
    packs[str(unpacked)] = name
    return [unpacked / experiment for experiment in unpack(Path(name), unpacked).experiments]


def _verify(path: Path, options: argparse.Namespace, display: Display, place: Path) -> list[Report]:
    """Verify an experiment's own files and, in parallel, each of its runs. With ``--rerun``, make the runs again one by
    one."""
    runs = runs_below(path)
    own = [] if options.digests_only or not (path / "experiment.json").exists() else [verify_experiment(path)]
    with pool(options.jobs or cores()) as processes:
        work = [processes.submit(verify_run, run, compute=not options.digests_only, place=place) for run in runs]
        found = []
        for done, future in enumerate(work, 1):
            found.append(future.result())
            display.build("verify", done, len(work))
    if runs and runs[0].path == path and not options.digests_only:
        check_plan(runs[0], found[0])
    if options.rerun:
        for run, report in zip(runs, found, strict=True):
            display.say(f"{run.name} is made again")
            rerun_run(run, report, display.build, display.single, trust=options.trust, place=place)
    return own + found


def _signature(path: Path, options: argparse.Namespace) -> Report:
    """Check a signature. A signature without a trusted key proves nothing and is a gap."""
    report = Report(f"{path}{_SIGNATURE}")
    try:
        signed = check_signature(path, options.allowed_signers, options.public_key)
    except HowdahError as error:
        report.findings.append(Discrepancy(MANIFEST, error.what))
        return report
    report.checked.append(f"signature: {signed.signer}")
    report.findings += [Discrepancy(MANIFEST, each) for each in signed.differing]
    if not signed.vouched:
        report.gaps.append("nothing says whose key this is: name a list of signers with --allowed-signers")
    return report


def _text(reports: list[Report], states: list[State]) -> str:
    """Return the report: one entry for runs with equal results; differences come last, where a reader looks."""
    homes = {str(Path(report.path).parent) for report in reports}
    alike: dict[object, list[Report]] = {}
    for report in reports:
        findings = (report.state, *report.gaps, "", *report.notes, "", *report.checked)
        alone = report.findings or report.path.removesuffix(_SIGNATURE) in homes
        alike.setdefault((report.path if alone else str(Path(report.path).parent), findings), []).append(report)
    ordered = sorted(alike.values(), key=lambda some: _ORDER.index(some[0].state))
    lines = [line for some in ordered for line in _lines(some)]
    counts = ", ".join(f"{states.count(word)} {word}" for word in _SIGNS if word in states)
    return "\n".join([*lines, counts or "there is nothing to verify"]) + "\n"


def _lines(reports: list[Report]) -> Iterator[str]:
    report = reports[0]
    names = [Path(each.path).name for each in reports]
    where = report.path if len(reports) == 1 else f"{Path(report.path).parent}, {len(reports)} runs"
    yield f"{_SIGNS[report.state]} {where}: {report.state}"
    if len(names) > 1:
        yield f"    {', '.join(names[:_MOST_SHOWN])}{' …' if len(names) > _MOST_SHOWN else ''}"
    yield from (f"    {each}" for each in report.findings[:_MOST_SHOWN])
    if len(report.findings) > _MOST_SHOWN:
        yield f"    and {len(report.findings) - _MOST_SHOWN} more; --json lists them"
    yield from (f"    not checked: {each}" for each in report.gaps)
    yield from (f"    {each}" for each in report.notes)
    claimed = list(dict.fromkeys(each for some in reports for each in some.claimed))
    if claimed:
        more = " …; --json lists them" if len(claimed) > _MOST_SHOWN else ""
        yield f"    claimed, cannot be checked: {'; '.join(claimed[:_MOST_SHOWN])}{more}"
    if report.checked:
        yield f"    checked: {'; '.join(report.checked)}"
