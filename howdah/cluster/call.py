# SPDX-License-Identifier: Apache-2.0
"""Calls a function on a worker's event loop, with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from distributed import Client
from distributed.protocol.pickle import dumps, loads

from howdah.errors import HowdahError

LIMIT_S = 60.0


class WorkerUnreachableError(HowdahError):
    """The worker did not answer. It may still be alive and answer later."""


def call(client: Client, address: str, function: Callable[..., Any], *arguments: Any, limit_s: float = LIMIT_S) -> Any:
    """Return what the function returns. Raises WorkerUnreachableError, or HowdahError if the function raised."""

    async def ask() -> Any:
        request = client.rpc(address).run(function=dumps(function), args=dumps(arguments), kwargs=dumps({}), wait=True)
        return await asyncio.wait_for(request, limit_s)

    try:
        answer = client.sync(ask)
    except (OSError, TimeoutError) as error:
        raise WorkerUnreachableError(
            f"the worker cannot be reached: {error or type(error).__name__}", where=address
        ) from error
    if answer["status"] != "OK":
        problem = answer.get("exception")
        problem = loads(problem) if isinstance(problem, bytes) else problem
        raise HowdahError(f"the worker cannot do it: {problem}", where=address)
    result = answer["result"]
    if isinstance(result, dict) and "error" in result:
        raise HowdahError(result["error"], where=result["where"] or address, hint=result["hint"])
    return result
