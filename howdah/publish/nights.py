# SPDX-License-Identifier: Apache-2.0
"""Nights of ``howdah nightly`` as TSDB blocks: each left its samples as OpenMetrics text, which is imported once."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

from howdah.build.cache import code
from howdah.foreign import open_foreign
from howdah.publish.blocks import DIRECTORY, are_there, blocks_in, build_text
from howdah.publish.prometheus import Prometheus

SAMPLES = "series.om"
SUFFIX = ".nights"


def nights(runs: Path) -> Iterator[Path]:
    """Directories of all nights below the runs directory, oldest first; unfinished ones are passed over."""
    for samples in sorted(runs.glob(f"*{SUFFIX}/[!.]*/{SAMPLES}")):
        if not samples.parent.is_symlink():
            yield samples.parent


def latest_nights(runs: Path) -> list[Path]:
    """The last night of each suite."""
    return list({night.parent: night for night in nights(runs)}.values())


def build_night(night: Path, prometheus: Prometheus) -> list[Path]:
    """The blocks of a night, made when they are not there. Raises HowdahError when promtool refuses the samples."""
    with open_foreign(night / SAMPLES) as samples:
        key = code(b"night\0" + hashlib.file_digest(samples, "sha256").digest())
    target = night / DIRECTORY / key[:16]  # nobody else can name blocks so that this user's Prometheus opens them
    if not are_there(target):
        build_text(_text(night / SAMPLES), prometheus.promtool, target, of=night)
    return blocks_in(target)


def _text(samples: Path) -> Iterator[str]:
    with io.TextIOWrapper(open_foreign(samples), encoding="utf-8") as file:
        yield from file
