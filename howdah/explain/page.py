# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from howdah.explain.explained import Explained
def write_page(flows: list[Explained], problems: list[str], target: Path) -> None:
    raise NotImplementedError
