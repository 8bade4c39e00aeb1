# SPDX-License-Identifier: Apache-2.0
"""The times of a trace's opportunities in a plan: microseconds from each to the next, packed into a string.

Standard library only: a guest unpacks them for its kernel.
"""

from __future__ import annotations

import base64
import sys
import zlib
from array import array

MOST_OPPORTUNITIES = 1 << 25  # LINK_MOST_OPPORTUNITIES of modules/link/link.h
LARGEST_GAP_US = 0xFFFFFFFF
_BYTES = 4


def packed(gaps_us: array[int]) -> str:
    """Pack the gaps: 32-bit integers, lowest byte first, zlib, Base64."""
    return base64.b64encode(zlib.compress(_ordered(gaps_us).tobytes(), 9)).decode("ascii")


def unpacked(text: str) -> array[int]:
    """Unpack the gaps. Raises ValueError for text that ``packed`` did not make."""
    try:
        unzipper = zlib.decompressobj()
        content = unzipper.decompress(base64.b64decode(text, validate=True), MOST_OPPORTUNITIES * _BYTES)
    except zlib.error as error:
        raise ValueError(f"the opportunities of a link cannot be unpacked: {error}") from None
    if unzipper.unconsumed_tail or not unzipper.eof or len(content) % _BYTES:
        raise ValueError("the opportunities of a link are incomplete, or too many")
    gaps_us = array("I")
    gaps_us.frombytes(content)
    return _ordered(gaps_us)


def _ordered(gaps_us: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return gaps_us
    swapped = array("I", gaps_us)
    swapped.byteswap()
    return swapped
