# SPDX-License-Identifier: Apache-2.0
"""The modules that the kernel of a guest loads."""

from __future__ import annotations

from collections.abc import Iterable

from howdah.build.modules import Module
from howdah.engine.uml.build import Built
from howdah.engine.uml.parameter import check_parameters
from howdah.plan.module import TRAFFIC_MODULE
from howdah.plan.plan import Plan


def modules_of(plan: Plan, required: Iterable[str] | None, built: Built) -> list[Module]:
    """The ``required`` ones and what they need, each behind what it depends on.

    Code of the user's may crash, and howdah_traffic names the calls that led there (modules/traffic/traffic_crash.c).
    So it is loaded beside a user's module or kernel, where it builds, even if another program makes the traffic.
    Raises HowdahError for one that did not build, and ParameterError.
    """
    brought = bool(plan.modules) or any("/" in kernel for kernel in plan.kernels)
    beside = [TRAFFIC_MODULE] if brought else []
    modules = built.module_set.choose(required, plan.kernels_algorithms, beside)
    check_parameters(plan, modules, built.kernel)
    return modules
