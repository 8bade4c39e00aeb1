# SPDX-License-Identifier: Apache-2.0
"""Messages between client and workers.

Dask pickles all but two, which are sent as dictionaries: ``About``, because the other side may have another version of
howdah, and ``RunProgress``, because Dask's events are JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from distributed import Client
from distributed.protocol.pickle import dumps, loads

from howdah.build.packed_piece import PackedPiece
from howdah.codec import decoded, encoded
from howdah.errors import HowdahError
from howdah.work.experiment import PlannedRun


@dataclass(frozen=True)
class About:
    """A worker's description. Workers with the same ``store`` share received pieces; ``making`` has the keys of its
    runs."""

    agent: str
    analysis: str
    machine: str
    host: str
    version: str
    store: str
    slots: int
    making: list[str]
    unfetched: list[MadeRun]


@dataclass(frozen=True)
class WantedBundle:
    """What an engine needs for runs (howdah/engine/engine_bundle.py).

    ``programs`` are files of its pieces that run with the machine's own C library. A worker that shares the client's
    cache has the pieces as built, by the names in ``own``; any other worker has ``packed_pieces``.
    """

    id: str
    engine: str
    content: dict[str, Any]
    programs: dict[str, tuple[str, ...]]
    own: tuple[str, ...] = ()
    packed_pieces: tuple[PackedPiece, ...] = ()


@dataclass(frozen=True)
class Order:
    """A run to make. ``plan`` is JSON, ``bundle`` the ``id`` of a WantedBundle, ``store`` the URL of a shared store."""

    key: str
    name: str
    plan: str
    parameter_places: dict[str, str]
    keep_data: bool
    bundle: str
    again: bool
    store: str | None
    patience_s: float | None = None

    @classmethod
    def of(cls, cell: PlannedRun, bundle: str, *, again: bool, store: str | None) -> Self:
        return cls(
            cell.key,
            cell.directory_name,
            cell.plan.to_json(),
            cell.plan.parameter_places,
            cell.keep_data,
            bundle,
            again,
            store,
            cell.patience_s,
        )


@dataclass(frozen=True)
class MadeRun:
    """A run that was made and packed, as stores keep it.

    ``failed``: its guest died. ``sha256`` and ``pack_bytes`` are those of the pack, ``results_sha256`` covers measures
    and verdict. ``host`` is the machine that made it, if the store records that.
    """

    key: str
    name: str
    verdict: str
    failed: bool
    analysis: str | None
    keep_data: bool
    results_sha256: str
    sha256: str
    pack_bytes: int
    wall_s: float
    host: str = ""

    def to_json(self) -> str:
        return json.dumps(encoded(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse a run. Raise ValueError for anything else."""
        try:
            return decoded(cls, json.loads(text))
        except (TypeError, AttributeError) as error:
            raise ValueError(str(error)) from error


@dataclass(frozen=True)
class Delivery:
    """A run that was made, and where its pack is: in ``pack``, in the shared store (``stored``), or on the ``worker``.

    ``not_stored`` is the reason why it is not in the shared store.
    """

    made: MadeRun
    worker: str
    host: str
    pack: bytes = field(default=b"", repr=False)
    stored: bool = False
    not_stored: str | None = None


@dataclass(frozen=True)
class Failure:
    """A run that could not be made. ``killed``: its process ended without a message."""

    key: str
    worker: str
    host: str
    error: str
    where: str | None = None
    hint: str | None = None
    errno: int | None = None
    free_bytes: int | None = None
    killed: bool = False


@dataclass(frozen=True)
class Unready:
    """The worker lacks the run's bundle."""

    key: str
    worker: str


@dataclass(frozen=True)
class RunProgress:
    """Progress of a run on a worker. Without ``phase`` it has just begun."""

    key: str
    worker: str
    phase: str | None = None
    done_us: int = 0
    of_us: int = 0

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Self:
        """Read an event of the topic, which anyone may have sent: ignore unknown fields, fill in missing ones."""
        known = {each.name for each in fields(cls)}
        return cls(**{"key": "", "worker": "", **{name: event[name] for name in known & event.keys()}})


LIMIT_S = 60.0


class WorkerUnreachableError(HowdahError):
    """The worker did not answer. It may still be alive and answer later."""


def call(client: Client, address: str, function: Callable[..., Any], *arguments: Any, limit_s: float = LIMIT_S) -> Any:
    """Call a function on a worker and return its result. Raise WorkerUnreachableError, or HowdahError if it failed."""

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
