# SPDX-License-Identifier: Apache-2.0
"""A worker of a cluster that makes no runs: each is a wait and a copy of one that was made. What is left is the cost of
the cluster itself.

Dask loads this module into a worker (``preload``); the process that would make runs is then this module as a program,
and speaks as ``howdah/work/worker.py`` does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from howdah.cluster import worker
from howdah.record.digest import seal
from howdah.record.directory import RunDirectory, read_json
from howdah.record.run import read_record
from howdah.work.forked import die_with_parent
from howdah.work.local import WorkerProcesses

RUN, SECONDS = "HOWDAH_BENCH_RUN", "HOWDAH_BENCH_SECONDS"
PRELOAD = {"DASK_DISTRIBUTED__WORKER__PRELOAD": "tests.bench.copied_run"}
_OWN = ("plan.json", "run.json")


def dask_setup(_worker: Any) -> None:
    """Called by Dask in a worker."""
    vars(worker)["WorkerProcesses"] = partial(WorkerProcesses, (sys.executable, "-m", __name__))


def copy(source: RunDirectory, target: RunDirectory) -> str:
    """Make the begun run ``target`` a finished one with the files of another; its verdict."""
    own = read_record(target)
    ignored = shutil.ignore_patterns(*_OWN)
    shutil.copytree(source.path, target.path, ignore=ignored, dirs_exist_ok=True)
    shutil.copyfile(target.plan, target.share / "plan.json")
    record = read_record(source)
    begun = {name: getattr(own, name) for name in own.model_fields_set}
    seal(target, record.replaced(**{**begun, "status": record.status}))
    return str(read_json(target.verdict)["verdict"])


def main() -> int:
    die_with_parent(int(sys.argv[1]))
    source = RunDirectory(Path(os.environ[RUN]))
    for line in iter(sys.stdin.readline, ""):
        time.sleep(float(os.environ[SECONDS]))
        verdict = copy(source, RunDirectory(Path(json.loads(line)["run"])))
        sys.stdout.write(json.dumps({"verdict": verdict}) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
