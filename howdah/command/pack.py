# SPDX-License-Identifier: Apache-2.0
"""``howdah pack``: write runs or experiments as one file; ``howdah unpack``: restore them from such a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field

from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.command.shape import CommandAnswer
from howdah.errors import HowdahError
from howdah.layout import fitted, write_stdout
from howdah.number import counted
from howdah.pack.archive import SUFFIX, size_on_disk
from howdah.pack.pack import default_name, pack, unpack
from howdah.pack.shape import Kind
from howdah.record.digest import file_sha256
from howdah.work.display import Display
from howdah.work.experiment import find


class Pack(CommandAnswer, shape="pack"):
    file: str
    bytes: int
    sha256: str
    files: int
    content_bytes: int
    runs: list[str]
    kind: Kind
    raw: bool = Field(description="whether it has all of raw/")
    rewritten: list[str] = Field(description="files in which paths of this machine were replaced")
    left_out: list[str]


class Unpack(CommandAnswer, shape="unpack"):
    directory: str
    experiments: list[str]
    files: int
    bytes: int


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", default=["latest"], help="runs or experiments (default: latest)")
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help=f"the file (default: NAME{SUFFIX})")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--results",
        dest="kind",
        action="store_const",
        const="results",
        default="everything",
        help="results, report, profile and provenance alone, small enough for a mail; nothing can be recomputed",
    )
    kind.add_argument(
        *("--tables", "--no-raw"),
        dest="kind",
        action="store_const",
        const="tables",
        help="leave out large records of the guest: tables cannot be recomputed, measures and verdict can",
    )
    add_runs_option(parser)
    add_json_option(parser)


def unpack_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a file that 'howdah pack' wrote")
    parser.add_argument("directory", type=Path, nargs="?", help="directory to write to (default: ./NAME of the pack)")
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    paths = [find(options.runs, name) for name in options.what]
    target = options.output or Path(f"{default_name(paths)}{SUFFIX}")
    with Display(quiet=options.json) as display:
        packed = pack(paths, target, kind=options.kind, tell=display.build)
    index, size = packed.index, packed.file.stat().st_size
    if options.json:
        answer(
            Pack(
                file=str(target),
                bytes=size,
                sha256=file_sha256(target),
                files=len(index.files),
                content_bytes=sum(each.bytes for each in index.files.values()),
                **index.model_dump(include={"runs", "kind", "raw", "rewritten", "left_out"}),
            )
        )
        return 0
    runs = len(index.runs)
    lines = [f"{target}: {runs} {'run' if runs == 1 else 'runs'}, {size / 1e6:.1f} MB"]
    if index.rewritten:
        lines.append(f"  paths of this machine were replaced in {len(index.rewritten)} files (pack.json lists them)")
    if index.left_out:
        lines.append(f"  left out: {len(index.left_out)} files or folders (pack.json lists them)")
    signed = [name for name in index.left_out if "manifest.sha256" in name]
    if signed:
        lines.append(
            "  its signature was left out: it covers files that packing changed. Sign this file's sha256sum instead"
        )
    write_stdout(fitted("\n".join(lines) + "\n"))
    return 0


def unpack_execute(options: argparse.Namespace) -> int:
    if not options.file.is_file():
        kind = "there is no such file"
        if options.file.exists():
            kind = "this is a directory, not a file" if options.file.is_dir() else "this is not a regular file"
        raise HowdahError(kind, where=str(options.file))
    name = options.file.name.removesuffix(SUFFIX).removesuffix(".tar.zst")
    target = options.directory or Path(name if name != options.file.name else f"{name}.d")
    index = unpack(options.file, target)
    files, size = len(index.files), size_on_disk(index)
    if options.json:
        answer(Unpack(directory=str(target), experiments=index.experiments, files=files, bytes=size))
    else:
        first = target / index.experiments[0] if index.experiments else target
        text = (
            f"{target}: {counted(len(index.runs), 'run')}, {files} files, {size / 1e6:.1f} MB\n"
            f"  results: {first / 'report.html'}\n  check:   howdah verify {first}\n"
        )
        write_stdout(fitted(text, whole="check: "))
    return 0
