# SPDX-License-Identifier: Apache-2.0
"""Opens the executor of a place. Imports Dask only for a cluster, because it is an optional extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from howdah.cluster.attachment import attachable
from howdah.cluster.place import Place, Tell
from howdah.errors import HowdahError
from howdah.extra import install_extra
from howdah.work.job import Executor


@contextmanager
def executor_at(
    place: Place, tell: Tell, *, runs: Path | None = None, again: bool = False
) -> Iterator[Executor | None]:
    """The executor at a place; None stands for this machine. The command and its numbers are stored in ``runs``.

    Raises HowdahError if the cluster cannot be reached or started.
    """
    if place.scheduler is None and place.kind is None:
        yield None
        return
    with needs_dask():
        from howdah.cluster.connect import connected
        from howdah.cluster.executor import ClusterExecutor
        from howdah.cluster.shared import SharedStore
    with ExitStack() as stack:
        shared = SharedStore(place.store) if place.store is not None else None
        client = stack.enter_context(connected(place, tell))
        if place.scheduler is not None and runs is not None:
            stack.enter_context(attachable(runs, place.scheduler))
        yield ClusterExecutor(client, tell, again=again, runs=runs, shared=shared)


@contextmanager
def needs_dask() -> Iterator[None]:
    """Guard imports that need Dask. Raises HowdahError if it is not installed."""
    try:
        yield
    except ImportError as error:
        raise HowdahError(
            f"runs on a cluster need Dask, which is not installed ({error.name})",
            hint=f"{install_extra('cluster')}; without --scheduler and --cluster this machine makes the runs",
        ) from error
