# SPDX-License-Identifier: Apache-2.0
"""``howdah bundle``: write kernel, guest tree, modules and tools as one file, for machines that build nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field

from howdah.build.bundle_file import read_bundle
from howdah.build.inventory import collect
from howdah.command.answer import answer
from howdah.command.common import add_json_option
from howdah.command.shape import CommandAnswer
from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.bundling import make_bundle
from howdah.errors import HowdahError, UsageError
from howdah.layout import write_stderr, write_stdout
from howdah.number import size
from howdah.verify.signature import require_key, sign_file
from howdah.work.display import Display

INCOMPLETE = 4


class BundleWritten(CommandAnswer, shape="bundle"):
    bundle: str = Field(description="the bundle's file or directory")
    digest: str = Field(description="SHA-256 of its bundle.json, which has the digests of all other files")
    bytes: int


class BundleSources(CommandAnswer, shape="bundle-sources"):
    bundle: str
    sources: str = Field(description="the directory with the fetched sources")
    missing: list[str] = Field(description="sources that the mirror lacks, with apt's reason")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the bundle: a file, or a directory to fill"
    )
    parser.add_argument(
        "--kernel",
        action="append",
        metavar="NAME",
        help=f"debian-VERSION; may be given again (default: {DEFAULT_KERNEL})",
    )
    parser.add_argument(
        "--with",
        dest="traffic",
        default="",
        metavar="TRAFFIC",
        help="also include the guest trees of this traffic: flent, quic or flent,quic",
    )
    parser.add_argument("--key", type=Path, metavar="FILE", help="sign it with this ssh key")
    parser.add_argument(
        "--sources", type=Path, metavar="DIR", help="fetch the sources of the existing bundle FILE into this directory"
    )
    add_json_option(parser)
    parser.set_defaults(interrupted="what is built and packed is kept; the same command does the rest")


def execute(options: argparse.Namespace) -> int:
    if options.sources is not None:
        return _sources(options)
    if options.key is not None:
        require_key(options.key)  # fail before spending a minute on packing
    traffic = [name for name in options.traffic.split(",") if name]
    with Display(quiet=options.json) as display:
        sign = None if options.key is None else lambda manifest: sign_file(manifest, options.key)
        digest = make_bundle(options.output, options.kernel or [DEFAULT_KERNEL], traffic, display.build, sign=sign)
    files = [options.output] if options.output.is_file() else [f for f in options.output.rglob("*") if f.is_file()]
    written = sum(file.stat().st_size for file in files)
    if options.json:
        answer(BundleWritten(bundle=str(options.output), digest=digest, bytes=written))
    else:
        write_stdout(f"{options.output}: {size(written)}\ndigest: {digest}\n")
    return 0


def _sources(options: argparse.Namespace) -> int:
    if options.kernel or options.traffic or options.key:
        raise UsageError("--sources writes no bundle: leave out --kernel, --with and --key")
    bundle = read_bundle(options.output)
    try:
        options.sources.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HowdahError(f"cannot be made: {error.strerror}", where=str(options.sources)) from error
    with Display(quiet=options.json) as display:
        missing = collect(bundle, options.sources.absolute(), display.build)
    if options.json:
        answer(BundleSources(bundle=str(options.output), sources=str(options.sources), missing=missing))
        return INCOMPLETE if missing else 0
    for each in missing:
        write_stderr(f"howdah: not available: {each}\n")
    write_stdout(f"{options.sources}: the sources of {options.output}\n")
    return INCOMPLETE if missing else 0
