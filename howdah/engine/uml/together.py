# SPDX-License-Identifier: Apache-2.0
"""Several guests in one virtual time: started together, and ended together when one of them fails.

A guest that waits for another one's clock sleeps, so only when no guest can go on does one of them hang.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from contextlib import ExitStack

from howdah.engine.ending import EXIT_FILE, Ending, runtime_base
from howdah.engine.processor import own_processor
from howdah.engine.uml import memory
from howdah.engine.uml.guest import POLL_S, Guest, Progress, Running, sweep
from howdah.errors import RunFailedError
from howdah.record.directory import read_json


def boot_together(guests: Mapping[str, Guest], progress: Progress) -> dict[str, Ending]:
    """Run all to their ends, which are returned by name; progress is that of the first.

    Where the program of one fails, all are ended, and only the end of that one is returned. Raises RunFailedError with
    the name of the guest whose kernel failed first and what is known of it.
    """
    base = runtime_base()
    sweep(base, *memory.directories())
    running: dict[str, Running] = {}
    try:
        with ExitStack() as processors:
            for name, guest in guests.items():
                running[name] = Running(guest, base, processors.enter_context(own_processor(base)))
            try:
                failed = _watch(running, progress)
            finally:
                _stop(running)
        progress(*next(iter(running.values())).life.position())
        return {name: _named(name, item) for name, item in running.items() if failed in (None, name)}
    finally:
        _stop(running)


def _stop(running: Mapping[str, Running]) -> None:
    for item in running.values():
        item.stop()


def _watch(running: Mapping[str, Running], progress: Progress) -> str | None:
    """Until all have ended well, or one has not, whose name is returned."""
    descriptors = {item.descriptor(): name for name, item in running.items()}
    first = next(iter(running.values()))
    try:
        waiting = dict(descriptors)
        while waiting:
            ended, _, _ = select.select(list(waiting), [], [], POLL_S)
            for descriptor in ended:
                name = waiting.pop(descriptor)
                if not _ended_well(running[name]):
                    return name
            progress(*first.life.position())
            troubles = {name: running[name].life.trouble() for name in waiting.values()}
            if troubles and all(troubles.values()):
                # One that sleeps waits for one that computes.
                name = max(troubles, key=lambda name: running[name].life.computes)
                raise _with_name(name, running[name].failure(str(troubles[name])))
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _ended_well(item: Running) -> bool:
    try:
        value = read_json(item.guest.raw / EXIT_FILE)
        return bool(value["exit"] == 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _named(name: str, item: Running) -> Ending:
    try:
        return item.ending()
    except RunFailedError as error:
        raise _with_name(name, error) from error


def _with_name(name: str, error: RunFailedError) -> RunFailedError:
    return RunFailedError(f"{name}: {error.what}", where=error.where, hint=error.hint)
