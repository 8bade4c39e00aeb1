# SPDX-License-Identifier: Apache-2.0
"""Moves runs that workers made to their final directories. Only the client names runs, so a key has one result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from distributed import Client

from howdah.build.cache import file_sha256
from howdah.cluster import worker
from howdah.cluster.call import call
from howdah.cluster.result import results_sha256, unpack_run
from howdah.cluster.shared import SharedStore
from howdah.errors import HowdahError, explain
from howdah.publish.sweep import Sweep
from howdah.record.directory import PARTIAL, WRITING, RunDirectory, read_json
from howdah.work.job import Job, Outcome


class Publisher:
    """``shared`` is where workers put finished runs, ``numbers`` those of the sweep.

    ``agents`` has the agent's directory of each engine, ``in_store`` the keys that may be in ``shared``, and
    ``paths`` are the directories of the experiments. Published runs are not kept in memory.
    """

    def __init__(self, client: Client, shared: SharedStore | None, numbers: Sweep, *, again: bool) -> None:
        self.agents: dict[str, Path] = {}
        self.in_store: set[str] = set()
        self.paths: set[Path] = set()
        self._client = client
        self._shared = shared
        self._numbers = numbers
        self._again = again
        self._fetched: dict[str, list[str]] = {}

    def stored(self, job: Job) -> dict[str, Any] | None:
        """Fetch a run from the shared store. Raises HowdahError if it has two results."""
        key = job.cell.key
        if self._shared is None or key not in self.in_store:
            return None
        found = self._shared.find(key)
        if len({each["results_sha256"] for each in found}) > 1:
            raise unequal(key, f"{found[-1]['host']}, in {self._shared.url}")
        fitting = [each for each in found if each["keep_data"] == job.cell.keep_data]
        return {**fitting[0], "stored": True, "worker": ""} if fitting else None

    def fits(self, result: dict[str, Any], job: Job) -> bool:
        """Whether a run made before matches and can be used."""
        return bool(result["keep_data"] == job.cell.keep_data) and not result.get("failed", False) and not self._again

    def compare(self, result: dict[str, Any]) -> bool:
        """Whether the run is already in its place, so that the worker can drop it.

        Raises HowdahError if the two differ. In virtual time that is never noise.
        """
        run = self._in_place(result)
        if run is None:
            return False
        self._fetched.setdefault(result["worker"], []).append(result["key"])
        if read_json(run.provenance).get("analysis_sha256") != result.get("analysis"):
            return True  # of another version of howdah
        if results_sha256(run) != result["results_sha256"]:
            raise unequal(str(run.path), result["host"])
        return True

    def _in_place(self, result: dict[str, Any]) -> RunDirectory | None:
        name = str(result.get("name", ""))
        if result.get("failed", True) or Path(name).name != name:
            return None
        for path in self.paths:
            run = RunDirectory(path / name)
            with suppress(HowdahError, FileNotFoundError):
                record = read_json(run.provenance)
                if record.get("key") == result["key"] and record.get("status") == "finished":
                    return run
        return None

    def publish(self, jobs: Sequence[Job], result: dict[str, Any]) -> list[Outcome]:
        """Put a run into the places of all jobs of its key. Raises HowdahError where it cannot be fetched."""
        with self._pack(jobs[0], result) as pack:
            outcomes = [self._keep(job, pack, result) for job in jobs]
        if result["worker"] and all(each.error is None for each in outcomes):
            self._fetched.setdefault(result["worker"], []).append(jobs[0].cell.key)
        return outcomes

    @contextmanager
    def _pack(self, job: Job, result: dict[str, Any]) -> Iterator[Path]:
        """Fetch the packed run to a file beside its final directory. Raises HowdahError if that fails."""
        file = job.experiment.path / f"{WRITING}pack-{job.cell.key[:16]}-{os.getpid()}"
        try:
            with file.open("wb") as opened:
                opened.write(result.get("pack", b""))
                if result.get("stored") and self._shared is not None:
                    opened.write(self._shared.read(result))
                while opened.tell() < result["bytes"]:
                    chunk = call(self._client, result["worker"], worker.read_run, job.cell.key, opened.tell())
                    if not chunk:
                        break
                    opened.write(chunk)
            self._numbers.received_bytes += file.stat().st_size
            if file_sha256(file) != result["sha256"]:
                raise HowdahError("it was damaged on its way")
            yield file
        finally:
            file.unlink(missing_ok=True)

    def _keep(self, job: Job, pack: Path, result: dict[str, Any]) -> Outcome:
        outcome = Outcome(job, wall_s=result["wall_s"], worker=result["host"])
        cell, experiment = job.cell, job.experiment
        partial = RunDirectory(experiment.path / f"{PARTIAL}{cell.directory_name}-{os.getpid()}")
        try:
            unpack_run(pack, partial, cell.plan.to_json(), cell.key, self.agents.get(cell.plan.engine))
            before = None if self._again else experiment.finished(cell)
            if before is not None and results_sha256(before) != results_sha256(partial):
                raise unequal(str(before.path), result["host"])
            experiment.keep(cell, partial)
            outcome.verdict, outcome.failed = result["verdict"], result.get("failed", False)
        except HowdahError as error:
            outcome.error = error
        except OSError as error:
            outcome.error = HowdahError(f"the run cannot be kept: {explain(error)}", where=str(experiment.path))
        finally:
            shutil.rmtree(partial.path, ignore_errors=True)  # of a run that was refused; a kept one has its name
        return outcome

    def acknowledge(self) -> None:
        """Tell workers which of their runs have been stored, so that they delete them."""
        fetched, self._fetched = self._fetched, {}
        for address, keys in fetched.items():
            with suppress(HowdahError):  # a worker that is gone tells of them when it is back
                call(self._client, address, worker.drop_runs, keys, limit_s=5.0)


def unequal(run: str, host: str) -> HowdahError:
    """The error for two results of one key that differ."""
    return HowdahError(
        "ALARM: the run was made twice with the same key and has two results",
        where=run,
        hint=f"The second is of {host}. In virtual time this is impossible: compare both machines ('howdah rerun').",
    )
