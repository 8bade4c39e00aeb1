# SPDX-License-Identifier: Apache-2.0
"""Prepares a run directory for a guest: share/ holds what the guest may read."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.build.modules import Module
from howdah.build.stack import BuiltStack
from howdah.engine.share import agent_command, stage, stage_collectors, stage_programs
from howdah.engine.uml.build import Built
from howdah.engine.uml.guest import Guest
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.run import KernelOrigin

STANDS_STILL_AFTER_S = 30.0  # processor seconds
# The most processor seconds per packet. A stack that handles each packet alone needs a tenth of it, a QUIC stack in
# Python some milliseconds at both ends. A sending stack may walk through all packets in flight at each ACK: gVisor's,
# with 13 000 packets in flight and 6600 of them lost, needs a minute for one simulated second.
_PACKET_S, _SENDER_PACKET_S, _PROGRAM_PACKET_S = 1e-3, 5e-3, 1e-2
_MOST_NAMED = 3
_CLOCK_SLACK_S = 120  # after the plan's end: an agent that still runs then waits for something that will not happen


def stage_guest(
    directory: RunDirectory,
    plan: Plan,
    built: Built,
    modules: list[Module],
    wiring: str,
    wire: int | None = None,
    stacks: Sequence[BuiltStack] = (),
) -> Guest:
    """Fill share/ and raw/ for a guest that runs the plan, or the part of it in ``directory.plan``."""
    programs = [(stack.name, stack.directory) for stack in stacks]
    stage(directory, built.agent, [(module.name, module.file) for module in modules], programs)
    stage_collectors(directory, plan)
    stage_programs(directory, plan)
    return Guest(
        kernel=built.started or built.kernel.image,
        c_library=None if built.started is None else built.tree.root,
        tree=built.tree.root,
        tools=built.tools,
        share=directory.share,
        raw=directory.raw,
        console=directory.console,
        command=agent_command("--wiring", wiring, wiring=wiring),
        memory_bytes=plan.guest_memory_bytes,
        wall_clock_limit_s=plan.wall_clock_limit_s,
        clock_limit_s=(plan.epoch_us + plan.end_us) // 10**6 + _CLOCK_SLACK_S,
        seed=plan.seed,
        kernel_arguments=tuple(f"{name}={value}" for name, value in plan.kernel_parameters.items()),
        profiled=plan.collect.cpu,
        wire=wire,
        pollers=_pollers(plan, stacks),
        busy_limit_s=_busy_limit_s(plan),
        own_modules=plan.modules_in_use,
    )


def _busy_limit_s(plan: Plan) -> float:
    """Return the most processor time that can pass between two signs of life, a simulated second apart."""
    packets_a_second = plan.path.highest_rate_bits_per_second / 8 / plan.path.frame_bytes
    packet_s = _SENDER_PACKET_S if any(flow.sender_stack for flow in plan.flows) else _PACKET_S
    packet_s = _PROGRAM_PACKET_S if any(flow.program for flow in plan.flows) else packet_s
    return STANDS_STILL_AFTER_S + packets_a_second * packet_s


def _pollers(plan: Plan, stacks: Sequence[BuiltStack]) -> tuple[str, ...]:
    programs = [flow.name for flow in plan.flows if flow.program]
    names = ", ".join(programs[:_MOST_NAMED]) + (" …" if len(programs) > _MOST_NAMED else "")
    return (
        *dict.fromkeys(f"the stack {stack.name}" for stack in stacks),
        *([f"a program of {names}"] if programs else []),
        *(f"the module {name}" for name in plan.modules_in_use),
    )


def kernel_origin(built: Built) -> KernelOrigin:
    """Return the kernel's entry in run.json."""
    kernel = built.kernel
    return KernelOrigin(
        release=kernel.release,
        image_sha256=kernel.image_sha256,
        config_sha256=kernel.config_sha256,
        source=kernel.source,
        compiler=kernel.compiler,
        options_not_taken=list(kernel.options_not_taken),
    )
