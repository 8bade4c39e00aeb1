# SPDX-License-Identifier: Apache-2.0
"""The name of a receiver behaviour as a field of a profile."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from howdah.errors import nearest
from howdah.quantity import QuantityError
from howdah.receiver import RECEIVERS


def _known_name(value: object) -> str:
    """Raises QuantityError, which names the nearest behaviour there is."""
    if isinstance(value, str) and value in RECEIVERS:
        return value
    close = nearest(str(value), RECEIVERS)
    hint = f"did you mean {close}?" if close else f"known: {', '.join(RECEIVERS)}"
    raise QuantityError(f"there is no receiver behaviour {value!r}; {hint}")


ReceiverName = Annotated[
    str,
    BeforeValidator(_known_name),
    WithJsonSchema({"enum": list(RECEIVERS), "x-shared": "ReceiverName"}),
]
