# SPDX-License-Identifier: Apache-2.0
"""``howdah exporter``: serve this machine's live state to Prometheus."""

from __future__ import annotations

import argparse

from howdah.errors import HowdahError
from howdah.publish.exporter import AddressError, add_arguments, serve


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    try:
        serve(options)
    except (AddressError, OSError, OverflowError) as error:
        raise HowdahError(
            f"the exporter cannot listen there: {error}",
            where=f"{options.address}, port {options.port}",
            hint="Choose another with --address and --port.",
        ) from error
    except KeyboardInterrupt:
        pass
    return 0
