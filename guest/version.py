# SPDX-License-Identifier: Apache-2.0
"""The version is the date of the bundle."""

import json
from pathlib import Path

_MANIFEST = Path(__file__).parent / "src/howdah_guest/bundle/bundle.json"
__version__ = json.loads(_MANIFEST.read_text())["made"].replace("-", ".") if _MANIFEST.is_file() else "0"
