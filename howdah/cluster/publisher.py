# SPDX-License-Identifier: Apache-2.0
"""Move runs that workers made to their final directories. Only the client does so, so a key has one result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from distributed import Client

from howdah.build.cache import file_sha256
from howdah.cluster import worker
from howdah.cluster.message import Delivery, MadeRun, call
from howdah.cluster.store import SharedStore, results_sha256, unpack_run
from howdah.errors import HowdahError, explain
from howdah.publish.sweep import SweepNumbers
from howdah.record.directory import PARTIAL, WRITING, RunDirectory
from howdah.record.run import read_record
from howdah.work.job import Job, Outcome


class Publisher:
    """Publishes runs. ``shared`` is the store where workers put finished runs, ``numbers`` those of the sweep.

    ``agents`` has the agent's directory of each engine, ``in_store`` the keys that may be in ``shared``, ``paths`` the
    directories of the experiments. Published runs are not kept in memory.
    """

    def __init__(self, client: Client, shared: SharedStore | None, numbers: SweepNumbers, *, again: bool) -> None:
        self.agents: dict[str, Path] = {}
        self.in_store: set[str] = set()
        self.paths: set[Path] = set()
        self._client = client
        self._shared = shared
        self._numbers = numbers
        self._again = again
        self._fetched: dict[str, list[str]] = {}

    def stored(self, job: Job) -> Delivery | None:
        """Find a job's run in the shared store. Raise HowdahError if the store has two different results."""
        key = job.cell.key
        if self._shared is None or key not in self.in_store:
            return None
        found = self._shared.find(key)
        if len({each.results_sha256 for each in found}) > 1:
            raise unequal(key, f"{found[-1].host}, in {self._shared.url}")
        fitting = [each for each in found if each.keep_data == job.cell.keep_data]
        return Delivery(fitting[0], "", fitting[0].host, stored=True) if fitting else None

    def fits(self, made: MadeRun, job: Job) -> bool:
        """Return whether a run made earlier can be used for a job."""
        return made.keep_data == job.cell.keep_data and not made.failed and not self._again

    def compare(self, delivery: Delivery) -> bool:
        """Return whether the run is already in its final directory, so that the worker can delete it.

        Raise HowdahError if the two differ. In virtual time that is never noise.
        """
        made = delivery.made
        run = self._in_place(made)
        if run is None:
            return False
        self._fetched.setdefault(delivery.worker, []).append(made.key)
        if read_record(run).analysis_sha256 != made.analysis:
            return True  # another version of howdah analysed it: cannot be compared
        if results_sha256(run) != made.results_sha256:
            raise unequal(str(run.path), delivery.host)
        return True

    def _in_place(self, made: MadeRun) -> RunDirectory | None:
        if made.failed or Path(made.name).name != made.name:
            return None
        for path in self.paths:
            run = RunDirectory(path / made.name)
            with suppress(HowdahError, FileNotFoundError):
                record = read_record(run)
                if record.key == made.key and record.status == "finished":
                    return run
        return None

    def publish(self, jobs: Sequence[Job], delivery: Delivery) -> list[Outcome]:
        """Put a run into the directories of all jobs of its key. Raise HowdahError if it cannot be fetched."""
        with self._pack(jobs[0], delivery) as pack:
            outcomes = [self._keep(job, pack, delivery) for job in jobs]
        if delivery.worker and all(each.error is None for each in outcomes):
            self._fetched.setdefault(delivery.worker, []).append(jobs[0].cell.key)
        return outcomes

    @contextmanager
    def _pack(self, job: Job, delivery: Delivery) -> Iterator[Path]:
        """Fetch the packed run to a file beside its final directory. Raise HowdahError if that fails."""
        file = job.experiment.path / f"{WRITING}pack-{job.cell.key[:16]}-{os.getpid()}"
        try:
            with file.open("wb") as opened:
                opened.write(delivery.pack)
                if delivery.stored and self._shared is not None:
                    opened.write(self._shared.read(delivery.made))
                while opened.tell() < delivery.made.pack_bytes:
                    chunk = call(self._client, delivery.worker, worker.read_run, job.cell.key, opened.tell())
                    if not chunk:
                        break
                    opened.write(chunk)
            self._numbers.received_bytes += file.stat().st_size
            if file_sha256(file) != delivery.made.sha256:
                raise HowdahError("it was damaged in transit")
            yield file
        finally:
            file.unlink(missing_ok=True)

    def _keep(self, job: Job, pack: Path, delivery: Delivery) -> Outcome:
        made = delivery.made
        outcome = Outcome(job, wall_s=made.wall_s, worker=delivery.host)
        cell, experiment = job.cell, job.experiment
        partial = RunDirectory(experiment.path / f"{PARTIAL}{cell.directory_name}-{os.getpid()}")
        try:
            unpack_run(pack, partial, cell.plan.to_json(), cell.key, self.agents.get(cell.plan.engine))
            before = None if self._again else experiment.finished(cell)
            if before is not None and results_sha256(before) != results_sha256(partial):
                raise unequal(str(before.path), delivery.host)
            experiment.keep(cell, partial)
            outcome.verdict, outcome.failed = made.verdict, made.failed
        except HowdahError as error:
            outcome.error = error
        except OSError as error:
            outcome.error = HowdahError(f"the run cannot be kept: {explain(error)}", where=str(experiment.path))
        finally:
            shutil.rmtree(partial.path, ignore_errors=True)  # only exists if the run was rejected
        return outcome

    def acknowledge(self) -> None:
        """Tell workers which of their runs have been stored, so that they delete them."""
        fetched, self._fetched = self._fetched, {}
        for address, keys in fetched.items():
            with suppress(HowdahError):  # a lost worker reports them again when it returns
                call(self._client, address, worker.drop_runs, keys, limit_s=5.0)


def unequal(run: str, host: str) -> HowdahError:
    """Return the error for two results of one key that differ."""
    return HowdahError(
        "ALARM: the run was made twice with the same key and has two results",
        where=run,
        hint=f"The second is of {host}. In virtual time this is impossible: compare both machines ('howdah rerun').",
    )
