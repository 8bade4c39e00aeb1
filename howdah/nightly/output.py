# SPDX-License-Identifier: Apache-2.0
"""The directory that a night leaves: page, JUnit, KTAP, mail, samples for Prometheus, and all of it as JSON."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from howdah.errors import HowdahError, explain
from howdah.nightly.commits import CommitSpan
from howdah.nightly.junit import junit, ktap
from howdah.nightly.mail import mail
from howdah.nightly.night import Night
from howdah.nightly.page import write_page
from howdah.nightly.series import families
from howdah.publish.blocks import SAMPLES, SUFFIX
from howdah.publish.openmetrics import openmetrics
from howdah.record.directory import write_json

RANGES = ".ranges"  # not below SUFFIX: commits of one evening are no series of nights
BISECT_LOG = "bisect.log"


def write_night(night: Night) -> Path:
    """The night's directory, whole or not there, and a link ``latest`` to it. Raises HowdahError."""
    root = night.runs / f"{night.suite.name}{SUFFIX if night.span is None else RANGES}"
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    place, partial = root / name, root / f".partial-{name}"
    try:
        partial.mkdir(parents=True)
        write_json(partial / "night.json", night.to_json())
        (partial / "junit.xml").write_text(junit(night), encoding="utf-8")
        (partial / "night.ktap").write_text(ktap(night), encoding="utf-8")
        (partial / "mail.txt").write_text(mail(night), encoding="utf-8")
        if isinstance(night.span, CommitSpan):
            (partial / BISECT_LOG).write_text(night.span.bisect_log(), encoding="utf-8")
        else:
            with (partial / SAMPLES).open("w", encoding="utf-8") as file:
                file.writelines(openmetrics(families(night)))
        write_page(night, partial / "index.html")
        partial.rename(place)
        link = root / f".latest-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        link.replace(root / "latest")
    except OSError as error:
        raise HowdahError(f"the night cannot be written: {explain(error)}", where=str(root)) from error
    return place


def write_copies(night: Night, ktap_file: Path | None, mail_file: Path | None) -> None:
    """KTAP and mail where a person wants them; ``-`` is standard output. Raises HowdahError."""
    for file, text in ((ktap_file, ktap(night)), (mail_file, mail(night))):
        if file is None:
            continue
        target = Path("/dev/stdout") if str(file) == "-" else file
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise HowdahError(f"it cannot be written: {explain(error)}", where=str(file)) from error
