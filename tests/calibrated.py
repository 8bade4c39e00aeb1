# SPDX-License-Identifier: Apache-2.0
"""A calibration as the judge reads it, from what the file holds."""

from __future__ import annotations

from typing import Any

from howdah.record.calibration import CalibrationRecord
from tests.unit.told_by_agent import read_as


def calibrated(found: dict[str, Any]) -> CalibrationRecord:
    return read_as(CalibrationRecord, found)
