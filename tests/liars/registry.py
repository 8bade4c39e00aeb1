# SPDX-License-Identifier: Apache-2.0
"""All liars. To add one, add it to the list of its file; the tests, and the list in README.md, follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.liars.agreements import AGREEMENTS
from tests.liars.baselines import BASELINES, HONEST_BASELINES
from tests.liars.bench import Bench
from tests.liars.causes import CAUSES, HONEST_CAUSES
from tests.liars.collected import COLLECTED
from tests.liars.comparisons import COMPARISONS, HONEST_COMPARISONS
from tests.liars.connections import CONNECTIONS
from tests.liars.forgeries import FORGERIES
from tests.liars.hops import HOPS
from tests.liars.hosts import HOSTS
from tests.liars.kernels import BOOTED, KERNEL_LOGS, KERNELS
from tests.liars.liar import Catch, Liar, RunLiar, ToldLiar
from tests.liars.links import LINKS
from tests.liars.logs import HONEST_LOGS, LOGS, RUN_LOGS
from tests.liars.machines import MACHINES
from tests.liars.models import MODELS
from tests.liars.modules import HONEST_MODULES, MODULES
from tests.liars.paths import PATHS
from tests.liars.plans import HONEST_PLANS, PLANS
from tests.liars.processors import PROCESSORS
from tests.liars.queues import BUFFERS, POLICERS, QUEUES
from tests.liars.records import RECORDS
from tests.liars.results import HONEST_RESULTS, RESULTS
from tests.liars.seals import HONEST_SEALS, SEALS
from tests.liars.ways import WAYS

RUNS: list[RunLiar] = [
    *PATHS,
    *BUFFERS,
    *QUEUES,
    *HOPS,
    *POLICERS,
    *WAYS,
    *HOSTS,
    *RECORDS,
    *BOOTED,
    *CONNECTIONS,
    *COLLECTED,
    *AGREEMENTS,
    *MACHINES,
    *MODELS,
    *KERNELS,
    *KERNEL_LOGS,
    *PROCESSORS,
    *LINKS,
    *RUN_LOGS,
]
TOLD: list[ToldLiar] = [*RESULTS, *CAUSES, *SEALS, *FORGERIES, *PLANS, *MODULES, *BASELINES, *COMPARISONS, *LOGS]
LIARS: list[Liar] = [*RUNS, *TOLD]
# What howdah says where nobody lies: nothing.
HONEST: dict[str, Callable[[Bench, Path], list[Catch]]] = {
    **HONEST_RESULTS,
    **HONEST_CAUSES,
    **HONEST_SEALS,
    **HONEST_PLANS,
    **HONEST_MODULES,
    **HONEST_BASELINES,
    **HONEST_COMPARISONS,
    **HONEST_LOGS,
}
