# SPDX-License-Identifier: Apache-2.0
"""What a program uses of howdah. ``__init__.py`` imports it when it is asked for."""

from howdah.errors import HowdahError as HowdahError
from howdah.library import Data as Data
from howdah.library import Recording as Recording
from howdah.library import Rows as Rows
from howdah.library import load as load
from howdah.library import run as run

__version__: str
