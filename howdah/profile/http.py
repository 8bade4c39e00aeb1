# SPDX-License-Identifier: Apache-2.0
"""HTTP transactions of a group: a real web server at the sender, a real client at the receiver."""

from __future__ import annotations

from pydantic import Field, model_validator

from howdah.profile.field import Bytes, PositiveDuration
from howdah.profile.section import FieldError, Section

MOST_HTTP_CONNECTIONS = 50  # each has a server and a client process of its own
_DAY_US = 86_400_000_000


class HttpSection(Section):
    """Requests one after the other over one connection (keep-alive), each for the same object."""

    object: Bytes = Field(description="size of the object, which is the body of each answer")
    requests: int = Field(default=1, ge=1, le=1000, description="how many, over each connection; never two at once")
    every: PositiveDuration | None = Field(
        default=None,
        description="a request begins so long after the one before at the earliest; when that is answered by default",
    )

    @model_validator(mode="after")
    def _possible(self) -> HttpSection:
        if self.every is not None and (self.every % 1000 or _DAY_US % self.every):
            what = "expected whole milliseconds of which a day has a whole number (curl counts requests a day)"
            raise FieldError(what, "every")
        if self.every is not None and self.requests == 1:
            raise FieldError("there is one request; leave every out, or give requests", "every")
        return self
