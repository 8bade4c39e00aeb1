# SPDX-License-Identifier: Apache-2.0
"""``howdah new``: write a commented profile from a few options, or from questions on a terminal."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from howdah.command.answer import answer
from howdah.command.common import add_json_option
from howdah.command.parser import section
from howdah.command.shape import CommandAnswer
from howdah.errors import HowdahError, ProfileError, nearest
from howdah.layout import write_stdout
from howdah.profile import Profile
from howdah.profile.draft import (
    Draft,
    check_algorithms,
    check_background,
    check_buffer,
    check_duration,
    check_flows,
    check_loss,
    check_outage,
    check_rate,
    check_repetitions,
    check_rtt,
    check_sizes,
    write,
    write_text,
)
from howdah.work.catalogue import expected_s, profile_core_s, shipped_profiles

_FLOWS_OF_A_TWIN = 16  # flows to read, to find what competed with the one to reproduce
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_EXAMPLES = """\
On a terminal, without options, it asks for each of them. An option that is not given has its default.
  howdah new mine --rate 400Mbit/s --rtt '50 ms, 100 ms' --algorithm cubic,bbr
  howdah new over-geo --path geo --algorithm cubic,search
  howdah new short --path starlink --sizes '15 kB, 1 MB' --background 2
  howdah new web --path starlink --sizes web-search --background web-search
  howdah new twin --from slow.pcap
"""


@dataclasses.dataclass(frozen=True)
class _Question:
    """One setting of a draft: its field, the text of its question, and the function that parses the answer."""

    field: str
    words: str
    check: Callable[[str], Any]
    example: str = ""
    of_a_path: bool = False  # a property of the path, not asked with --like
    interactive: bool = True  # asked on a terminal; otherwise only an option
    of_link: bool = False  # a property of the link, which can be added to the path of --like

    @property
    def default(self) -> str:
        value = getattr(Draft(""), self.field)
        return ", ".join(value) if isinstance(value, tuple) else str(value)


_QUESTIONS = (
    _Question("rate", "rate of the bottleneck", check_rate, "100 Mbit/s", of_a_path=True),
    _Question("rtt", "round-trip time without any queue", check_rtt, "100 ms", of_a_path=True),
    _Question("buffer", "buffer of the bottleneck", check_buffer, "1 bdp", of_a_path=True),
    _Question("reverse_rate", "rate of the reverse path", check_rate, "not limited", interactive=False, of_link=True),
    _Question("loss", "share of packets lost at random", check_loss, "none", interactive=False, of_link=True),
    _Question(
        "outage",
        "when the link is down, such as '100 ms at 3 s'",
        check_outage,
        "none",
        interactive=False,
        of_link=True,
    ),
    _Question("algorithms", "algorithms to compare", check_algorithms, "cubic,reno"),
    _Question("flows", "concurrent flows", check_flows, "1"),
    _Question(
        "sizes",
        "data of each flow; or a .csv of sizes, or web-search, data-mining, facebook-hadoop: a group of transfers",
        check_sizes,
        "no end",
        interactive=False,
    ),
    _Question(
        "background",
        "number of background flows (cubic), or a .csv or a name as for --sizes",
        check_background,
        "0",
        interactive=False,
    ),
    _Question("duration", "simulated time of a run", check_duration, "20 s"),
    _Question("repetitions", "repetitions of each run", check_repetitions, "3"),
)
_SWEPT = ("algorithms", "reverse_rate", "loss", "sizes")


class New(CommandAnswer, shape="new"):
    profile: str
    name: str
    runs: int
    core_s: float


def _option(question: _Question) -> str:
    return "algorithm" if question.field == "algorithms" else question.field.replace("_", "-")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the experiment, and of the file NAME.yaml")
    path = section(parser, "path")
    path.add_argument(
        *("--like", "--path"), metavar="PROFILE", help="take the path of another profile, such as paths/geo or geo"
    )
    path.add_argument(
        "--from",
        dest="recordings",
        action="append",
        type=Path,
        metavar="FILE",
        help="take path, ends and size from a recorded transfer, as 'howdah explain' finds them: its twin; "
        "once for each file of a ring",
    )
    path.add_argument(
        "--flow", type=int, default=1, metavar="N", help="with --from: the flow with the N-th most data (default: 1)"
    )
    rest = section(parser, "experiment")
    for question in _QUESTIONS:
        name = _option(question)
        swept = question.of_a_path or question.field in _SWEPT
        several = "; a list with commas is a sweep" if swept else ""
        default = question.default or question.example
        (path if question.of_a_path or question.of_link else rest).add_argument(
            f"--{name}",
            dest=question.field,
            metavar="NAME,..." if name == "algorithm" else "N" if question.default.isdecimal() else "VALUE",
            help=f"{question.words} (default: {default}){several}",
        )
    parser.add_argument("--output", type=Path, metavar="FILE", help="the file to write (default: ./NAME.yaml)")
    add_json_option(parser)
    parser.set_defaults(interrupted="no profile was written")


def execute(options: argparse.Namespace) -> int:
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and not options.json
    name = _experiment_name(options, interactive)
    file = options.output or Path(f"{name}.yaml")
    profile = _twin(options, name, file) if options.recordings else write(_draft(options, name, interactive), file)
    core_s = profile_core_s(profile)
    if options.json:
        answer(New(profile=str(file), name=name, runs=len(profile.cells()), core_s=core_s))
    else:
        write_stdout(_summary(profile, file, core_s))
    return 0


def _twin(options: argparse.Namespace, name: str, file: Path) -> Profile:
    """Write the profile of a recorded flow. Raise ProfileError for options of a draft, which cannot be combined with
    it."""
    for question in _QUESTIONS:
        if getattr(options, question.field) is not None:
            raise ProfileError(
                f"--{_option(question)} and --from are both given; give one", hint="change the file afterwards"
            )
    if options.like is not None:
        raise ProfileError("--like and --from are both given; give one")
    from howdah.explain.read import MOST_FLOWS, read_files  # only needed here
    from howdah.explain.twin import twin_text
    from howdah.work.display import Display

    if not 1 <= options.flow <= MOST_FLOWS:
        raise ProfileError(f"expected a flow from 1 to {MOST_FLOWS}", where=f"--flow {options.flow}")
    with Display(quiet=options.json) as display:
        flows = read_files(options.recordings, max(options.flow, _FLOWS_OF_A_TWIN), display.build).flows
    if len(flows) < options.flow:
        raise ProfileError(f"the recording has {len(flows)} flows with data", where=f"--flow {options.flow}")
    return write_text(twin_text(flows[options.flow - 1], name, flows), file)


def _summary(profile: Profile, file: Path, core_s: float) -> str:
    runs = len(profile.cells())
    return (
        f"wrote {file}: {runs} run{'' if runs == 1 else 's'}, about {expected_s(core_s)} on one core\n"
        f"next: howdah run {file}\n"
        f"      howdah plan {file}    # only print what a run does\n"
    )


def _experiment_name(options: argparse.Namespace, interactive: bool) -> str:
    if options.name is not None:
        return _check_name(options.name)
    if options.output is not None:
        return _check_name(options.output.stem)
    if interactive:
        return str(_ask("name of the experiment", "mine", _check_name))
    raise ProfileError("the experiment needs a name", hint="for example: howdah new mine")


def _check_name(text: str) -> str:
    name = text.removesuffix(".yaml")
    if not _NAME.fullmatch(name):
        what = f"{text!r} cannot name an experiment: expected at most 63 lower-case letters, digits, '-', '_' and '.'"
        raise ProfileError(what, hint="--output FILE writes it to another place")
    return name


def _draft(options: argparse.Namespace, name: str, interactive: bool) -> Draft:
    given: dict[str, Any] = {}
    if options.like is not None:
        given["like"] = _check_like(options.like)
        for question in _QUESTIONS:
            if question.of_a_path and question.field != "buffer" and getattr(options, question.field) is not None:
                raise ProfileError(f"--{question.field} and --like are both given; give one")
        given["buffer"] = ""
    for question in _QUESTIONS:
        written = getattr(options, question.field)
        if written is not None:
            given[question.field] = _parse_option(question, written)
    if interactive and not given:  # a command with options, such as one copied from a page, asks nothing
        for question in (each for each in _QUESTIONS if each.interactive):
            given[question.field] = _ask(question.words, question.default, question.check)
    return Draft(name, **given)


def _parse_option(question: _Question, written: str) -> Any:
    try:
        return question.check(written)
    except ProfileError as error:
        line = str(error.where).removeprefix(written) if str(error.where).startswith(f"{written}:") else ""
        raise ProfileError(error.what, where=f"--{_option(question)} {written}{line}", hint=error.hint) from None


def _check_like(text: str) -> str:
    """Return the name of a shipped path, given with or without its directory, or the path of a file."""
    if Path(text).is_file():
        return str(Path(text).resolve())
    shipped = shipped_profiles()
    names = {_below_profiles(file): file for file in shipped.values()}
    for name in (text.removesuffix(".yaml"), f"paths/{text}"):
        if name in names:
            return name
    if text in shipped:
        return _below_profiles(shipped[text])
    close = nearest(text, names) or nearest(f"paths/{text}", names)
    paths = ", ".join(name for name in names if name.startswith("paths/"))
    hint = f"did you mean {close}?" if close else f"ready-made paths: {paths}"
    raise ProfileError(f"there is no profile {text!r} to take a path from", where=f"--like {text}", hint=hint)


def _below_profiles(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}" if file.parent.name in ("paths", "atlas", "cpu") else file.stem


def _ask(words: str, default: str, check: Callable[[str], Any]) -> Any:
    """Ask until the answer is valid; Enter accepts the default. Raise HowdahError at the end of the input."""
    while True:
        write_stdout(f"{words} [{default}]: ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            write_stdout("\n")
            raise HowdahError("the input ended before the last answer; no profile was written")
        try:
            return check(line.strip() or default)
        except ProfileError as error:
            write_stdout(f"  {error}\n")
