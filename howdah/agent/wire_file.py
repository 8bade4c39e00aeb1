# SPDX-License-Identifier: Apache-2.0
"""The name of the file that says what a kernel's wires carried; the judge reads it."""

from __future__ import annotations

WIRE_FILE = "wire.json"
