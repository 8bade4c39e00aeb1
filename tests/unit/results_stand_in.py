# SPDX-License-Identifier: Apache-2.0
"""Results of a run as an analysis that knows the answer leaves them. It loads little: a worker imports it."""

from __future__ import annotations

import json

from howdah.record.directory import RunDirectory, write_json

TRUE, FALSE = 4321, 9999  # exit windows, packets

WORKER = """
    import json, sys, pathlib
    from howdah.record.digest import seal
    from howdah.record.directory import RunDirectory
    from howdah.record.run import KernelOrigin, read_record
    from tests.unit.results_stand_in import results
    run = RunDirectory(pathlib.Path(sys.argv[1]))
    (run.raw / "agent.json").write_text("{}")
    results(run)
    kernel = KernelOrigin(release="6.12.1")
    seal(run, read_record(run).replaced(status="finished", wall_s=1.0, kernel=kernel, analysis_sha256=ANALYSIS))
    print(json.dumps({"verdict": "pass"}))
"""


def results(run: RunDirectory, window: int = TRUE) -> None:
    """metrics.json with one measure, and a verdict that lets it count."""
    plan = json.loads(run.plan.read_text())
    common = {"run": plan["run"], "engine": plan["engine"], "kernel": "6.12.1", "algorithm": plan["algorithm"]}
    common |= {"receiver": "linux", "repetition": plan["repetition"], "axes": plan["axes"]}
    row = {**common, "flow": 1, "metric": "exit_cwnd_packets", "value": window, "unit": "packets"}
    write_json(run.metrics, {"format": 1, "rows": [row], "cross_checks": []})
    write_json(run.verdict, {"format": 1, "verdict": "pass", "checks": []})
