# SPDX-License-Identifier: Apache-2.0
"""The date in generated files, reproducible so that the same input gives the same bytes."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from howdah.errors import UsageError

_VARIABLE = "SOURCE_DATE_EPOCH"


def source_date() -> datetime:
    """Return the time of ``SOURCE_DATE_EPOCH``, or now. Raises UsageError if the variable is not a time.

    https://reproducible-builds.org/specs/source-date-epoch/
    """
    seconds = os.environ.get(_VARIABLE)
    try:
        return datetime.now(UTC) if not seconds else datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{_VARIABLE}={seconds} does not say seconds since 1970") from error
