# SPDX-License-Identifier: Apache-2.0
"""``howdah build``: build what the default engine needs before the first run, or take it from a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field

from howdah.build.bundle_file import MANIFEST, SIGNATURE, BundleFile, read_bundle
from howdah.build.cache import Cache
from howdah.build.supply import take
from howdah.command.answer import answer
from howdah.command.common import add_json_option
from howdah.command.shape import CommandAnswer
from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.build import build_all
from howdah.errors import HowdahError, UsageError
from howdah.layout import write_stderr, write_stdout
from howdah.scratch import scratch
from howdah.verify.signature import ssh_signer
from howdah.work.display import Display
from howdah.work.trust import ANSWER


class Build(CommandAnswer, shape="build"):
    built: dict[str, str] = Field(description="the path of each part")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel", default=DEFAULT_KERNEL, metavar="TREE", help="a kernel source tree, debian-VERSION or debian-newest"
    )
    parser.add_argument("--from", dest="bundle", type=Path, metavar="FILE", help="unpack a bundle instead of compiling")
    parser.add_argument(
        "--digest", metavar="SHA256", help="the digest that the bundle must have (SHA-256 of its bundle.json)"
    )
    parser.add_argument(
        "--allowed-signers", type=Path, metavar="FILE", help="require an ssh signature by one of these (ssh-keygen(1))"
    )
    parser.add_argument(ANSWER, action="store_true", help="use a bundle that nobody vouches for")
    add_json_option(parser)
    parser.set_defaults(interrupted="what is built is kept; the same command builds the rest")


def execute(options: argparse.Namespace) -> int:
    if options.bundle is None and (options.digest or options.allowed_signers or options.trust):
        raise UsageError(f"--digest, --allowed-signers and {ANSWER} apply to a bundle: name it with --from FILE")
    with Display(quiet=options.json) as display:
        if options.bundle is not None:
            bundle = read_bundle(options.bundle.absolute())
            voucher = voucher_of(bundle, options.digest, options.allowed_signers, trust=options.trust)
            write_stderr(f"howdah: {bundle.title}: {voucher}\n")
            for step, ready in enumerate(bundle.pieces):
                display.build(f"unpack {ready.about}", step, len(bundle.pieces))
            take(bundle, Cache())
        built = build_all(options.kernel, display.build)
    if options.json:
        answer(Build(built=built))
    else:
        for what, where in built.items():
            write_stdout(f"{what}: {where}\n")
    return 0


def voucher_of(bundle: BundleFile, digest: str | None, allowed_signers: Path | None, *, trust: bool) -> str:
    """Return, in words, who vouches for a bundle, whose programs run as this user. Raise HowdahError if nobody does."""
    where = str(bundle.place)
    if digest is not None and bundle.digest != digest.lower():
        raise HowdahError(
            f"this bundle has the digest {bundle.digest}, not {digest}",
            where=where,
            hint="Fetch it again; if the digest is the same, this is another bundle.",
        )
    signer = signer_of(bundle, allowed_signers)
    if digest is not None:
        return f"it has the digest {bundle.digest[:12]}… that was requested"
    if allowed_signers is not None:
        if signer is None:
            raise HowdahError("this bundle is not signed", where=where, hint="Ask for a signed one, or give --digest.")
        return signer
    if not trust:
        raise HowdahError(
            f"nobody vouches for this bundle ({signer or 'it is not signed'}), and its programs run as you",
            where=where,
            hint="Give --allowed-signers FILE, or --digest with the digest that was published "
            f"(this one has {bundle.digest}), or {ANSWER} if you made it.",
        )
    return signer or "it is not signed"


def signer_of(bundle: BundleFile, allowed_signers: Path | None = None) -> str | None:
    """Return, in words, who signed a bundle, or None if it is unsigned. Raise HowdahError for an invalid signature."""
    if not bundle.has(SIGNATURE):
        return None
    with scratch("howdah-") as directory:
        manifest, signature = directory / MANIFEST, directory / SIGNATURE
        bundle.extract(MANIFEST, manifest)
        bundle.extract(SIGNATURE, signature)
        return ssh_signer(manifest.read_bytes(), signature, allowed_signers)[0]
