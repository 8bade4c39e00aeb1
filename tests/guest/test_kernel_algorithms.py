# SPDX-License-Identifier: Apache-2.0
"""Every congestion control of the kernel's tree runs by its name, and starts up as docs/algorithms.md says."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.guest
