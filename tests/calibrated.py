# SPDX-License-Identifier: Apache-2.0
"""A calibration as the judge reads it, from what the file holds."""

from __future__ import annotations

from typing import Any

from howdah.record.calibration import CalibrationRecord


def calibrated(found: dict[str, Any]) -> CalibrationRecord:
    return CalibrationRecord.model_validate(found)
