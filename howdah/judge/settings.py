# SPDX-License-Identifier: Apache-2.0
"""Check that the kernel had the planned settings, by what the agent read back from it after the set-up.

A wrong setting of TCP changes the result but not the path, so measurements of the path cannot detect it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from howdah.agent.settings import same_value
from howdah.judge.engine import tc_not_asked
from howdah.linux.netlink.discipline.rate import TICK_NS
from howdah.plan.line import WIRE, WIRE_HANDLE, delay_lines
from howdah.plan.operation import AddRoute, Gso, ModuleParameter, Mtu, Offload, QueueLength, Sysctl, VethLink
from howdah.plan.placed import Class, Filter, Police
from howdah.plan.plan import Plan
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.record.agent import AgentRecord, KernelRecord, ModuleRecord, NodeQueues, ShownPolicer, ShownQueue
from howdah.record.verdict import ENGINE, Check

_Kind = TypeVar("_Kind")

_OWN_QUEUES = ("noqueue", "mq", "pfifo_fast")  # attached by the kernel itself
_NIC_QUEUE = "pfifo"  # set by the engine on the ends of a link between two machines
_STEP_US = 2  # rounding of times: CoDel counts 1.024 us, PIE 64 ns
_OWN_SYSCTLS = ("net.ipv4.tcp_congestion_control", "net.ipv4.ip_forward")  # set by a flow's programs
_BYTE_PER_SECOND = 8  # tc prints rates in whole bytes per second
_SHOWN = 3
_OF_TCP = "tcp_"  # engines pass their kernels parameters of other code as well
_BOOT_ONLY = "ipv6.disable"  # cannot be changed in a running kernel


def settings_checks(plan: Plan, agent: AgentRecord | None) -> list[Check]:
    """Return the checks of agent.json. Return none if it is missing, which another check reports."""
    if agent is None:
        return []
    return [
        _check("sysctls", _sysctls(plan, agent), "sysctls"),
        _check("interfaces", _interfaces(plan, agent), "links"),
        _check("queues", _queues(plan, agent), "qdiscs")
        if agent.qdiscs or plan.calibration.enabled
        else tc_not_asked("queues"),
        _check("routes", _routes(plan, agent), "routes"),
        _check("module parameters", _parameters(plan, agent), "modules"),
        *_boot_checks(plan, agent),
    ]


def _check(name: str, wrong: list[str] | None, source: str) -> Check:
    """Return a check. ``wrong`` has a sentence for each difference, or is None if the agent did not read them."""
    if wrong is None:
        # Agents of earlier releases did not read routes.
        return Check(name, ENGINE, None if source == "routes" else False, f"agent.json holds no {source}")
    more = f" (and {len(wrong) - _SHOWN} more)" if len(wrong) > _SHOWN else ""
    message = "; ".join(wrong[:_SHOWN]) + more if wrong else f"the {name} are those of the plan"
    return Check(name, ENGINE, not wrong, message, 0, len(wrong), 0, "settings")


def _sysctls(plan: Plan, agent: AgentRecord) -> list[str] | None:
    """Compare the sysctls in the plan with their values; all others must be equal on all nodes of a kernel."""
    dumps = agent.sysctls
    if not dumps:
        return None
    wanted: dict[tuple[str | None, str], str] = {}
    for sysctl in _operations(plan, Sysctl):
        wanted[sysctl.node, sysctl.name] = sysctl.value
    wrong = []
    for (node, name), value in wanted.items():
        places = [node] if node is not None else [place for place in dumps if place.startswith("*")]
        for place in places:
            found = dumps.get(place, {}).get(name)
            if found is not None and not _equal_words(value, found):
                wrong.append(f"{name} is {found} {_at(place)}, the plan says {value}")
    if not plan.traits.several_machines and len(plan.kernels) == 1:  # other kernels may have other defaults
        wrong += _differing_sysctls(dumps, {name for _, name in wanted})
    return wrong


def _differing_sysctls(dumps: dict[str, dict[str, str]], wanted: set[str]) -> Iterator[str]:
    """Report sysctls that the plan does not set and that differ between nodes."""
    nodes = {node: values for node, values in dumps.items() if not node.startswith("*")}
    names = dict.fromkeys(name for values in nodes.values() for name in values)
    for name in names:
        if name in wanted or name in _OWN_SYSCTLS:
            continue
        places: dict[str, list[str]] = {}
        for node, values in nodes.items():
            if name in values:
                places.setdefault(values[name], []).append(node)
        if len(places) > 1:
            values_text = ", ".join(f"{value} at {' and '.join(where)}" for value, where in places.items())
            yield f"{name} is {values_text}, and the plan sets it nowhere"


def _interfaces(plan: Plan, agent: AgentRecord) -> list[str] | None:
    """Compare MTU, offloads, the largest burst of segmentation offload, and queue lengths."""
    dumps = agent.links
    if not dumps:
        return None
    wanted: dict[tuple[str, str, str], int | bool] = {}
    for mtu in _operations(plan, Mtu):
        wanted[*mtu.at, "mtu_bytes"] = mtu.mtu_bytes
    for gso in _operations(plan, Gso):
        wanted[*gso.at, "gso_max_segs"] = gso.gso_max_segs
    for length in _operations(plan, QueueLength):
        wanted[*length.at, "queue_packets"] = length.packets
    for offload in _operations(plan, Offload):
        wanted[*offload.at, offload.feature] = offload.enabled
    wrong = []
    for (node, interface, name), value in wanted.items():
        link = dumps.get(node, {}).get(interface)
        found = link.setting(name) if link else None
        if found is not None and found != value:
            wrong.append(f"{name} of {node}:{interface} is {_shown(found)}, the plan says {_shown(value)}")
    return wrong


def _queues(plan: Plan, agent: AgentRecord) -> list[str] | None:
    """Compare the kind, limits and thresholds of every queue and the rate of every class before the flows; report
    unplanned queues."""
    dumps = agent.qdiscs
    if not dumps:
        return None
    wanted = {queue.place: queue.kind for queue in plan.queues}
    ends = {end for link in _operations(plan, VethLink) for end in link.ends}
    lines = {line.place for line in delay_lines(plan)} if plan.parts else set()
    usual = [*_OWN_QUEUES, (agent.sysctls or {}).get("*", {}).get("net.core.default_qdisc")]
    if plan.traits.several_machines:
        usual.append(_NIC_QUEUE)
    found: dict[tuple[str, str, str], str] = {}
    for node, dump in dumps.items():
        for item in dump.qdiscs:
            found[node, str(item.dev), str(item.handle)] = str(item.kind)
    wrong = [
        f"the queue {handle} of {node}:{interface} is {_kind(found.get((node, interface, handle)))}, "
        f"the plan says {kind}"
        for (node, interface, handle), kind in wanted.items()
        if node in dumps
        and found.get((node, interface, handle)) != kind
        and not ((node, interface, handle) in lines and found.get((node, interface, handle)) == WIRE)
    ]
    wrong += [
        f"{node}:{interface} has a queue {handle} of kind {kind} that the plan does not know"
        for (node, interface, handle), kind in found.items()
        if (node, interface) in ends
        and (node, interface, handle) not in wanted
        and kind not in usual
        and not ((node, interface, ROOT_HANDLE) in lines and (handle, kind) == (WIRE_HANDLE, WIRE))
    ]
    further = (_limits, _classes, _filters, _policers)
    return wrong + [sentence for found in further for sentence in found(plan, dumps)]


def _limits(plan: Plan, dumps: dict[str, NodeQueues]) -> Iterator[str]:
    """Compare limits and thresholds of queues, as the kernel reports them."""
    for item in plan.queues:
        names = item.discipline.told
        dump = dumps.get(item.node)
        if not names or dump is None:
            continue
        for found in dump.qdiscs:
            if (found.dev, found.handle, found.kind) != (item.interface, item.handle, item.kind):
                continue
            reported = _options(found)
            for word, name in names.items():
                value, planned = reported.get(word), getattr(item.discipline, name)
                if planned is None:
                    continue
                queue = f"the queue {item.handle} of {item.node}:{item.interface}"
                if isinstance(value, str) and isinstance(planned, str) and value != planned:
                    yield f"{queue} has {word} {value}, the plan says {planned}"
                step = _STEP_US if name.endswith("_us") else 0
                if isinstance(value, int) and abs(value - int(planned)) > step:
                    yield f"{queue} has {_option(word, name, value)}, the plan says {planned}"


def _filters(plan: Plan, dumps: dict[str, NodeQueues]) -> Iterator[str]:
    """Compare the DSCP by which a queue classifies packets. With another one, marked packets are treated like any
    other."""
    for item in _operations(plan, Filter):
        node, interface = item.at
        dump = dumps.get(node)
        if dump is None:
            continue
        found = dump.filters.get(interface, [])
        if [(each.dscp, each.queue) for each in found] != [(item.dscp, item.queue)]:
            reported = ", ".join(f"DSCP {each.dscp}" for each in found) or "no mark"
            yield f"the queue of {node}:{interface} looks at {reported}, the plan says DSCP {item.dscp}"


def _policers(plan: Plan, dumps: dict[str, NodeQueues]) -> Iterator[str]:
    """Compare rate and burst of policers, which the kernel keeps in steps of 64 ns; report unplanned policers."""
    wanted = {item.at: item for item in _operations(plan, Police)}
    reported = {
        (node, interface): buckets for node, dump in dumps.items() for interface, buckets in dump.policers.items()
    }
    for node, interface in dict.fromkeys([*wanted, *(place for place, buckets in reported.items() if buckets)]):
        item, found = wanted.get((node, interface)), reported.get((node, interface), [])
        if node not in dumps or (item and len(found) == 1 and _same_bucket(found[0], item)):
            continue
        held = " and ".join(map(str, found))
        planned = f"{item.burst_bytes} bytes at {item.rate_bits_per_second} bit/s" if item else "nothing of it"
        yield f"the policer of {node}:{interface} holds {held or 'nothing: it is missing'}, the plan says {planned}"


def _same_bucket(found: ShownPolicer, item: Police) -> bool:
    step = item.rate_bits_per_second * TICK_NS // 8_000_000_000 + 1
    same_rate = abs(found.rate_bits_per_second - item.rate_bits_per_second) <= _BYTE_PER_SECOND
    # A rate in whole bytes per second fills the bucket a little later.
    share = _BYTE_PER_SECOND * item.burst_bytes // item.rate_bits_per_second
    return same_rate and bool(abs(found.burst_bytes - item.burst_bytes) <= step + share)


def _classes(plan: Plan, dumps: dict[str, NodeQueues]) -> Iterator[str]:
    """Compare rates of classes. An older tc prints classes as text even with -json; those are not compared."""
    for item in _operations(plan, Class):
        node, interface = item.at
        dump = dumps.get(node)
        for found in dump.classes.get(interface, []) if dump else []:
            if isinstance(found, str) or found.handle != item.classid or found.rate is None:
                continue
            rate, planned = found.rate * 8, item.rate.rate_bits_per_second
            if abs(rate - planned) > _BYTE_PER_SECOND:
                yield f"the class {item.classid} of {node}:{interface} has {rate} bit/s, the plan says {planned}"


def _routes(plan: Plan, agent: AgentRecord) -> list[str] | None:
    """Compare initial windows and quick ACKs of the routes that have any."""
    dumps = agent.routes
    if not dumps:
        return None
    wanted: dict[tuple[str, str], dict[str, int]] = {}
    for item in _operations(plan, AddRoute):
        if item.metrics:
            wanted[item.node, item.destination] = item.metrics
    found = {
        (node, route.destination): route.metrics for node, routes in dumps.items() for route in routes if route.metrics
    }
    return [
        f"the route of {node} to {destination} has {_metrics(found.get((node, destination)))}, "
        f"the plan says {_metrics(wanted.get((node, destination)))}"
        for node, destination in dict.fromkeys([*wanted, *found])
        if node in dumps and found.get((node, destination)) != wanted.get((node, destination))
    ]


def _parameters(plan: Plan, agent: AgentRecord) -> list[str] | None:
    """Compare parameters of modules and built-in code, as far as they can be read."""
    dumps = agent.modules
    if dumps is None:
        return None
    wanted: dict[tuple[str, str], str] = {}
    for key, value in plan.kernel_parameters.items():
        if key == _BOOT_ONLY and plan.traits.outlives_run:
            continue  # such a kernel was not booted for the run
        module, _, name = key.partition(".")
        wanted[module, name] = str(value)
    for item in _operations(plan, ModuleParameter):
        wanted[item.module, item.name] = item.value
    for module, parameters in plan.module_parameters.items():
        for name, value in parameters.items():
            wanted[module, name] = str(value)
    wrong = []
    for (module, name), value in wanted.items():
        found = (dumps.get(module) or ModuleRecord()).parameters.get(name)
        if found is not None and not same_value(value, found):
            wrong.append(f"{module}.{name} is {found}, the plan says {value}")
    return wrong


def _boot_checks(plan: Plan, agent: AgentRecord) -> list[Check]:
    """Compare the parameters that each kernel got at boot, including those that it shows nowhere else.

    Return none if no kernel was booted for the run, or if an agent of an earlier release did not read them.
    """
    kernels: dict[str, KernelRecord] = {
        "the kernel": agent,
        **{f"the kernel of {name}": one for name, one in (agent.machines or {}).items()},
    }
    reported = {name: one.boot_parameters for name, one in kernels.items() if one.boot_parameters is not None}
    if plan.traits.outlives_run or not plan.kernel_parameters or not reported:
        return []
    wrong = []
    for kernel, given in reported.items():
        for name, value in plan.kernel_parameters.items():
            if name not in given:
                wrong.append(f"{kernel} was not given {name}, the plan says {value}")
            elif not same_value(str(value), given[name]):
                wrong.append(f"{kernel} was given {name}={given[name]}, the plan says {value}")
        others = [name for name in given if name.startswith(_OF_TCP) and name not in plan.kernel_parameters]
        wrong += [f"{kernel} was given {name}, the plan says nothing of it" for name in others]
    return [_check("boot parameters", wrong, "boot_parameters")]


def _operations(plan: Plan, kind: type[_Kind]) -> Iterator[_Kind]:
    return (operation for operation in plan.operations if isinstance(operation, kind))


def _equal_words(wanted: str, found: str) -> bool:
    words = wanted.split(), found.split()
    return len(words[0]) == len(words[1]) and all(map(same_value, *words))


def _at(place: str) -> str:
    return "in the kernel" if place.startswith("*") else f"at {place}"


def _shown(value: int | bool) -> str:
    return str(value) if not isinstance(value, bool) else "on" if value else "off"


def _options(queue: ShownQueue) -> dict[str, Any]:
    """Return a queue's options; those of GRED's virtual queues have the queue's number as a prefix."""
    options = dict(queue.options)
    for each in options.get("vqs", ()):
        options |= {f"{each.get('vq')} {word}": value for word, value in each.items()}
    return options


def _option(word: str, name: str, value: int) -> str:
    """Return an option in words: ``limit 3 packets``, ``target 5000 us``."""
    unit = name.rpartition("_")[2]
    return f"{word} {value}" + f" {unit}" * (unit in ("bytes", "packets", "us"))


def _kind(kind: str | None) -> str:
    return kind or "missing"


def _metrics(metrics: dict[str, int] | None) -> str:
    return ", ".join(f"{name} {value}" for name, value in metrics.items()) if metrics else "no window of its own"
