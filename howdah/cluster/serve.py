# SPDX-License-Identifier: Apache-2.0
"""Run a scheduler or a worker as a process, on loopback unless another address is given."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import dask
from distributed import Scheduler, Worker

from howdah.cluster import worker as tasks
from howdah.cluster.connect import ADDRESS, PAGES, SETTINGS, guard, security_of
from howdah.cluster.reach import check_scheduler, host_of, own_host, require_tls
from howdah.publish.guard import LOOPBACK
from howdah.scratch import scratch

_LOOK_AGAIN_S = 2.0
_REACH_S = 20.0
_WORKER_TTL = "60 s"  # a worker silent for this long is lost; its runs go to others
Say = Callable[[str], None]


def run_scheduler(host: str, port: int, dashboard: int | None, tls: Path | None, say: Say) -> None:
    """Run until SIGINT or SIGTERM. Raise OSError if the port is taken, HowdahError beyond loopback without
    certificates.

    Dask's own pages, which support no certificates, are on loopback.
    """
    require_tls(host, tls)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    pages = PAGES if dashboard is not None else {}
    dask.config.set({"distributed.scheduler.worker-ttl": _WORKER_TTL, **SETTINGS, **pages})

    async def serve() -> None:
        ended = _ended()
        async with Scheduler(
            host=host,
            port=port,
            protocol="tls" if tls else "tcp",
            security=security_of(tls),
            dashboard=dashboard is not None,
            dashboard_address=f"{LOOPBACK}:{dashboard or 0}",
        ) as scheduler:
            guard(scheduler)
            say(f"scheduler {scheduler.address}")
            await ended.wait()

    asyncio.run(serve())


def run_worker(address: str, threads: int, host: str | None, tls: Path | None, say: Say) -> None:
    """Run until SIGINT or SIGTERM. Wait for a scheduler that does not answer.

    Raise HowdahError if the scheduler's certificates do not match these, or are missing beyond loopback.
    """
    if address.startswith("tcp://"):  # for tls://, check_scheduler() reports missing certificates
        require_tls(host_of(address), tls)
    if host is not None:
        require_tls(host, tls)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set(SETTINGS)

    async def serve() -> None:
        ended = _ended()
        while not ended.is_set():
            with scratch("howdah-dask-") as local:
                try:
                    await asyncio.to_thread(check_scheduler, address, tls, _REACH_S)
                    one: Any = await Worker(
                        address,
                        nthreads=threads,
                        host=host or own_host(address),
                        security=security_of(tls),
                        local_directory=str(local),
                        dashboard=False,
                        dashboard_address=ADDRESS,
                        memory_limit=0,
                    )
                except (OSError, TimeoutError, RuntimeError) as error:
                    say(f"the scheduler {address} does not answer: {error}")
                else:
                    say(f"worker {one.address}, {threads} at a time")
                    await _first(one.finished(), ended.wait())
                    if ended.is_set():
                        tasks.abandon(None)
                    await one.close(timeout=5, executor_wait=False, nanny=False)
            if not ended.is_set():
                await _first(asyncio.sleep(_LOOK_AGAIN_S), ended.wait())

    asyncio.run(serve())
    os._exit(0)  # a normal exit would wait for threads that wait for runs


def _ended() -> asyncio.Event:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended


async def _first(*waited: Awaitable[Any]) -> None:
    tasks_ = [asyncio.ensure_future(each) for each in waited]
    _, others = await asyncio.wait(tasks_, return_when=asyncio.FIRST_COMPLETED)
    for each in others:
        each.cancel()
