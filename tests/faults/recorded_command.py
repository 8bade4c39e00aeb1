# SPDX-License-Identifier: Apache-2.0
"""``howdah ARGUMENTS``, for which the compiler makes the recording's plan: no profile gives its network."""

from __future__ import annotations

import sys

from howdah.command.main import main
from tests.unit.recorded_run import recorded_compiler

if __name__ == "__main__":
    with recorded_compiler():
        sys.exit(main())
