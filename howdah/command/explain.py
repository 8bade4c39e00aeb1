# SPDX-License-Identifier: Apache-2.0
"""``howdah explain``: how a recorded transfer started up, what its path was like, and what limited it."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field

from howdah.command.answer import answer
from howdah.command.common import RESULTS, add_json_option
from howdah.command.parser import section
from howdah.command.shape import CommandAnswer
from howdah.errors import UsageError
from howdah.explain.page import write_page
from howdah.explain.read import MOST_FLOWS, Read, read_files
from howdah.explain.words import ExplainedFlow, JoinedShape, sentence, shown_flow, shown_joined, text
from howdah.layout import write_stdout
from howdah.work.display import Display


class Explain(CommandAnswer, shape="explain"):
    found: list[str] = Field(description="a sentence for each flow")
    flows: list[ExplainedFlow]
    joined: list[JoinedShape]
    problems: list[str] = Field(description="problems of the files")
    others: int = Field(description="number of connections that are not shown")
    page: str | None


_EXAMPLES = """\
It reads pcap and pcapng, tcp_probe as text, the output of ss -tin, iperf3's JSON and qlog; gzip, xz and zstd as well.
  howdah explain slow.pcap
  howdah explain slow.pcap.gz --page slow.html
  howdah explain sender.pcap receiver.pcap   # both ends, joined
  howdah new twin --from slow.pcap      # a profile that reproduces it
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a recording of one or more transfers")
    results = section(parser, RESULTS)
    results.add_argument("--flows", type=int, default=5, metavar="N", help="the N flows with most data (default: 5)")
    results.add_argument("--page", type=Path, metavar="FILE", help="also write an HTML page with pictures")
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    if not 1 <= options.flows <= MOST_FLOWS:
        raise UsageError(f"--flows: expected 1 to {MOST_FLOWS}, not {options.flows}")
    with Display(quiet=options.json) as display:
        read = read_files(options.files, options.flows, display.build)
    if options.page is not None:
        write_page(read.flows, read.joined, read.problems, options.page)
    if options.json:
        answer(_answer(read, options.page))
        return 0
    write_stdout(text(read.flows, read.problems, read.others, read.joined))
    if options.page is not None:
        write_stdout(f"page: {options.page}\n")
    return 0


def _answer(read: Read, page: Path | None) -> Explain:
    return Explain(
        found=[sentence(flow) for flow in read.flows],
        flows=[shown_flow(flow) for flow in read.flows],
        joined=[shown_joined(each) for each in read.joined],
        problems=read.problems,
        others=read.others,
        page=str(page) if page is not None else None,
    )
