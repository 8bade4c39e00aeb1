# SPDX-License-Identifier: Apache-2.0
"""Checks claims against their profile before anything runs: metrics, flows, axes, values, controls and units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from howdah.errors import ProfileError, nearest
from howdah.metric import RATIO, Metric, known_entries, known_metrics, read_share
from howdah.profile.claim import ClaimSection, ExpectSection, RangeSection, SelectorSection
from howdah.profile.control import CONTROL_AXIS, ControlSection, axis_key
from howdah.profile.model import Scenario
from howdah.profile.override import field_value, set_by_case
from howdah.profile.report import SURE
from howdah.profile.search import SearchSection
from howdah.profile.source import Document, Path_
from howdah.profile.sweep import Axis
from howdah.profile.unsayable import unsayable
from howdah.quantity import QuantityError


@dataclass(frozen=True)
class _Need:
    """A precondition of some metrics: a test of the scenario, and the message if it fails. The metrics are all those of
    a module of howdah/measure/, or only the ``named`` ones."""

    module: str
    has: Callable[[Scenario], bool]
    lacks: str
    named: frozenset[str] = frozenset()


def _has_processors(scenario: Scenario) -> bool:
    return any(end.processor.is_there for end in (scenario.sender, scenario.receiver))


def _has_background(scenario: Scenario) -> bool:
    return bool(scenario.background) or any(group.role == "background" for group in scenario.groups)


def _has_flows(scenario: Scenario) -> bool:
    return bool(scenario.flows)


def _has_size(scenario: Scenario) -> bool:
    measured = [group for group in scenario.groups if group.role == "measured"]
    drawn = any(group.http or group.web or group.mix or group.sizes for group in measured)
    sizes = [*(flow.size for flow in scenario.flows), *(group.size for group in measured)]
    return drawn or any(size is not None for size in sizes)


_GROUPS_ALONE = "it is of flows, and the profile has groups alone"
_OF_A_FLOW = frozenset(
    {"overshoot_packets", "peak_cwnd_packets", "dropped_packets", "first_loss_retransmitted_packets", "blackout_s"}
    | {"time_to_90_percent_s", "min_rtt_us", "max_rtt_us", "receive_window_limited_s", "window_cuts"}
    | {"time_to_cwnd_s", "rounds_to_cwnd", "window_open_time_s", "window_open_sent_bytes"}
)
_OF_A_SIZE = frozenset(
    {"completion_time_s", "transfer_time_s", "completed_share"}
    | {f"completion_time_{share}_s" for share in ("p10", "p25", "median", "p75", "p90", "p95", "p99")}
)
_NEEDS = (
    _Need("receiver", lambda scenario: bool(scenario.collect.pcap), "collect.pcap names no interface of a receiver"),
    _Need("cpu", lambda scenario: scenario.collect.cpu, "collect.cpu is off"),
    _Need("processor", lambda scenario: scenario.collect.cpu, "collect.cpu is off"),
    _Need("host_processor", _has_processors, "no host of the profile has a processor"),
    _Need("group", lambda scenario: bool(scenario.groups), "the profile has no group"),
    _Need("exit_rows", _has_flows, _GROUPS_ALONE, _OF_A_FLOW),
    _Need("course", _has_flows, _GROUPS_ALONE),
    _Need("recovery", _has_flows, _GROUPS_ALONE),
    _Need("limit", _has_flows, _GROUPS_ALONE),
    _Need("", _has_size, "no flow or group of the profile has a size", _OF_A_SIZE),
    _Need("measured", _has_background, "the profile has no background"),
)
# A similar metric that is always measured.
_INSTEAD = {
    "autotuning_lag_s": "held_autotuning_share",
    "offered_window_most_bdp": "receive_window_peak_bytes",
    "completion_without_think_s": "completion_time_s",
    "completion_time_median_s": "completion_time_s",
    "completion_time_s": "goodput_bits_per_second",
    "transfer_time_s": "goodput_bits_per_second",
}


def not_measurable(metric: Metric, scenarios: Sequence[Scenario]) -> tuple[str, str | None] | None:
    """Why no run of the scenarios has the metric, and the nearest metric that they have; None if a run may have it.

    A metric that several modules measure needs the preconditions of only one of them.
    """
    lacking = [need for need in _NEEDS if not any(need.has(scenario) for scenario in scenarios)]
    why = _lacks(metric, lacking)
    if why is None:
        return None
    there = [name for name, each in known_metrics().items() if _lacks(each, lacking) is None]
    instead = _INSTEAD.get(metric.name)
    return why, instead if instead in there else nearest(metric.name, there)


def _lacks(metric: Metric, lacking: Sequence[_Need]) -> str | None:
    missing = {f"howdah.measure.{need.module}": need.lacks for need in lacking}
    if metric.modules and all(module in missing for module in metric.modules):
        return missing[metric.modules[0]]
    return next((need.lacks for need in lacking if metric.name in need.named), None)


TRAFFIC_AXIS = "traffic"  # axis of the run that cross_check adds
ALGORITHM = "algorithm"


def completed(claim: ClaimSection) -> tuple[SelectorSection, SelectorSection | None]:
    """Both sides of a claim, with ``than`` completed by the fields of ``value``."""
    value = claim.value
    assert value is not None
    if claim.than is None:
        return value, None
    given = {name: getattr(claim.than, name) for name in claim.than.model_fields_set if name != "at"}
    return value, value.model_copy(update={**given, "at": {**value.at, **claim.than.at}})


@dataclass
class ClaimCheck:
    """Checks claims against what they may refer to. ``axes`` have the values as written and those after overrides."""

    document: Document
    axes: Sequence[Axis]
    scenarios: Sequence[Scenario]
    controls: dict[str, ControlSection]
    _place: Path_ = field(default=(), init=False)

    def check(self, claims: Sequence[ClaimSection]) -> None:
        """Raise ProfileError at the first claim that does not fit the profile."""
        for index, claim in enumerate(claims):
            self._place = ("claims", index)
            self._check_entries(claim)
            if claim.value is not None:
                self._check_claim(claim)

    def check_search(self, search: SearchSection, claims: Sequence[ClaimSection]) -> None:
        """Raise ProfileError if no run can provide what the search looks for."""
        if search.falsify is not None:
            self._place = ("search", "falsify")
            chosen = next((each for each in claims if each.id == search.falsify), None)
            if chosen is None:
                names = [each.id for each in claims]
                raise self._unknown(f"there is no claim {search.falsify!r}", search.falsify, names)
            if chosen.expect is None or chosen.expect.over is not None:
                form = "a trend" if chosen.expect is not None and chosen.expect.trend else "a rank correlation"
                why = "it is not measurable here" if chosen.expect is None else f"it expects {form}"
                raise self._error(f"no search can falsify {chosen.id}: {why}")
            return
        name = "maximise" if search.maximise is not None else "minimise"
        goal = search.maximise or search.minimise
        assert goal is not None
        self._place = ("search", name)
        value, than = goal.sides
        metric = self._checked_metric(value.metric, "metric")
        for side, selector in (("flow", value), ("than", than)):
            if selector is not None:
                self._check_flow(selector, side)
                other = self._checked_metric(selector.metric, side)
                if other.is_text:
                    raise self._error(f"{selector.metric} is a text, which has no size", "metric")
                if other.dimension != metric.dimension:
                    raise self._error(f"{metric.name} and {other.name} have different units", "than")
        if than == value:
            raise self._error("both sides are the same: than changes nothing", "than")
        as_claim = ClaimSection(id="goal", says="goal", value=value, expect=ExpectSection(at_least="0"))
        self._check_axes(as_claim, value, than)

    def _check_claim(self, claim: ClaimSection) -> None:
        value, than = completed(claim)
        metric = self._checked_metric(value.metric, "value", "metric")
        self._check_flow(value, "value")
        other = metric
        if than is not None:
            other = self._checked_metric(than.metric, "than", "metric")
            self._check_flow(than, "than")
            if other.dimension != metric.dimension or other.is_text:
                what = f"{metric.name} and {other.name} have different units and cannot be compared"
                raise self._error(what, "than", "metric")
        self._check_axes(claim, value, than)
        self._check_expectation(claim, metric)
        if claim.control is not None:
            self._check_control(claim, value, than)

    def _check_entries(self, claim: ClaimSection) -> None:
        for entry in claim.entry:
            self._check_entry(entry)

    def _check_entry(self, entry: str) -> None:
        if entry not in known_entries():
            raise self._unknown(f"the atlas has no entry {entry!r}", entry, known_entries(), "entry")

    def _checked_metric(self, name: str, *place: str) -> Metric:
        metric = known_metrics().get(name)
        if metric is None:
            raise self._unknown(
                f"there is no metric {name!r}", name, known_metrics(), *place, listed="docs/measures.md"
            )
        missing = not_measurable(metric, self.scenarios)
        if missing is not None:
            why, close = missing
            hint = f"did you mean {close}?" if close else None
            raise self._error(f"no run of this profile can measure {name}: {why}", *place, hint=hint)
        return metric

    def _check_flow(self, selector: SelectorSection, side: str) -> None:
        flow = selector.flow
        groups = {group.name for scenario in self.scenarios for group in scenario.groups}
        if selector.take is not None and flow != "all" and flow not in groups:
            raise self._error("take is over flow: all or the connections of a group", side, "take")
        if flow is None:
            return
        if flow == "all":
            if selector.take is None:
                raise self._error("flow: all needs take (sum, mean, min or max)", side, "flow")
            return
        if isinstance(flow, int):
            count = min(len(scenario.flows) for scenario in self.scenarios)
            if not 1 <= flow <= count:
                has = f"the profile has {count} flow{'s' if count != 1 else ''}, counted from 1"
                hint = "background and groups are called by their names"
                raise self._error(f"there is no flow {flow}: {has}", side, "flow", hint=hint)
            return
        names = self._flow_names() | groups
        generated = any(flow.startswith(f"{group}-") and flow[len(group) + 1 :].isdigit() for group in groups)
        if flow not in names and not generated:
            raise self._unknown(f"there is no flow or group {flow!r}", flow, names, side, "flow")

    def _flow_names(self) -> set[str]:
        names = set()
        for scenario in self.scenarios:
            names |= {flow.name or f"flow{index + 1}" for index, flow in enumerate(scenario.flows)}
            names |= {flow.name or f"background{index + 1}" for index, flow in enumerate(scenario.background)}
        return names

    def _check_axes(self, claim: ClaimSection, value: SelectorSection, than: SelectorSection | None) -> None:
        expect = claim.expect
        assert expect is not None
        along = [*claim.each, *([expect.over] if expect.over else [])]
        for name in along:
            place = ("expect", "over") if name == expect.over else ("each",)
            known = [axis.name for axis in self.axes]
            if name not in known:
                raise self._unknown(f"this profile does not sweep over {name}", name, known, *place)
        if expect.over is not None and len(self._axis_values(expect.over)) < 2:
            raise self._error(f"a trend over {expect.over} needs at least two values of it", "expect", "over")
        for wanted in expect.with_ or ():
            self._check_point(str(expect.over), wanted, "expect", "with")
        for name in value.at:
            if name in along:
                raise self._error(f"{name} is fixed here and given in each or over as well", "value", "at", name)
        given = claim.than.at if claim.than is not None else {}
        for side, at in (("value", value.at), ("than", given)):
            for name, wanted in at.items():
                self._check_point(name, wanted, side)
        for side, selector in (("value", value), ("than", than)):
            for axis in self.axes:
                if selector and len(axis.values) > 1 and axis.name not in selector.at and axis.name not in along:
                    values = ", ".join(str(item) for item in axis.values)
                    what = f"the axis {axis.name} is not fixed: it is {values}"
                    raise self._error(what, side, "at", hint=f"give it in at, or {axis.name} in each")
        if than is not None and claim.than is not None and than == value:
            raise self._error("both sides are the same: than changes nothing of value", "than")

    def _axis_values(self, name: str) -> list[str]:
        """The values of an axis, or the one value of a field that is not swept."""
        axis = next((axis for axis in self.axes if axis.name == name), None)
        if axis is not None:
            return [str(item) for item in axis.values]
        if name == CONTROL_AXIS:
            return list(self.controls)
        if name == TRAFFIC_AXIS:
            check = self.scenarios[0].cross_check
            return [check.traffic] if check else []
        if name == ALGORITHM:
            return [self.scenarios[0].algorithm]
        value = field_value(self.document.data, name)
        return [] if value is None or isinstance(value, dict | list) else [str(value)]

    def _check_point(self, name: str, wanted: Any, side: str, field: str = "at") -> None:
        if set_by_case(self.document, name) is not None:
            raise self._error(f"case decides {name}", side, field, name, hint="give the case instead")
        known = self._axis_values(name)
        if not known:
            names = [*(axis.name for axis in self.axes), *([CONTROL_AXIS] if self.controls else [])]
            raise self._unknown(f"this profile does not sweep over {name}", name, names, side, field, name)
        if isinstance(wanted, list):
            what = f"{name} has several values here; a claim is about one point"
            raise self._error(what, side, field, name, hint=f"give one, or {name} in each")
        if axis_key(wanted) not in map(axis_key, known):
            what = f"{name} is never {wanted} in this profile"
            raise self._unknown(what, str(wanted), known, side, field, name)

    def _check_expectation(self, claim: ClaimSection, metric: Metric) -> None:
        expect = claim.expect
        assert expect is not None
        if metric.is_text != (expect.form == "is_"):
            kind, fits = ("text", "is: ...") if metric.is_text else ("number", "a number, a word or a trend")
            raise self._error(f"{metric.name} is a {kind}; expect {fits}", "expect")
        try:
            if expect.in_at_least is not None:
                read_share(expect.in_at_least)
            for share in (expect.by, expect.within if expect.trend else None):
                if share is not None:
                    read_share(share)
            check_range(expect, metric)
            if expect.ratio is not None:
                check_range(expect.ratio, RATIO)
            if expect.difference is not None:
                check_range(expect.difference, metric)
            if expect.rank_correlation is not None:
                check_range(expect.rank_correlation, RATIO)
        except QuantityError as error:
            raise self._error(f"{metric.name}: {error}", "expect") from None

    def _check_control(self, claim: ClaimSection, value: SelectorSection, than: SelectorSection | None) -> None:
        control = self.controls.get(str(claim.control))
        if control is None:
            what = f"there is no control {claim.control!r}"
            raise self._unknown(what, str(claim.control), self.controls, "control")
        for side, selector in (("value", value), ("than", than)):
            if selector is None:
                continue
            if CONTROL_AXIS in selector.at:
                raise self._error("a claim with a control cannot name one in at as well", side, "at", CONTROL_AXIS)
            for name, wanted in selector.at.items():
                kept = control.at.get(name)
                left = [axis_key(item) for item in (kept if isinstance(kept, list) else [kept])]
                if name in control.at and name not in control.set and axis_key(wanted) not in left:
                    what = f"the control {claim.control} has no runs at {name} = {wanted}, which the claim is about"
                    raise self._error(what, "control", hint=f"widen controls.{claim.control}.at")

    def _error(self, what: str, *place: str | int, hint: str | None = None) -> ProfileError:
        return ProfileError(what, where=self.document.place((*self._place, *place)), hint=hint)

    def _unknown(self, what: str, name: str, known: Any, *place: str | int, listed: str | None = None) -> ProfileError:
        names = sorted(str(item) for item in known)
        lacking = None if nearest(name, names, SURE) else unsayable(name)
        close = nearest(name, names)
        shown = f"{listed} has them" if listed else f"known: {', '.join(names[:30])}" if names else None
        hint = lacking.hint() if lacking else f"did you mean {close}?" if close else shown
        return self._error(what, *place, hint=hint)


def check_range(expect: RangeSection, metric: Metric) -> None:
    """Raise QuantityError unless every quantity of a range has the metric's dimension."""
    for name in ("above", "below", "at_least", "at_most"):
        text = getattr(expect, name)
        if text is not None:
            metric.read(text)
    if expect.equals is not None:
        metric.read_tolerance(expect.within or "10 %", metric.read(expect.equals))
    if expect.between is not None:
        low, high = (metric.read(text) for text in expect.between)
        if low > high:
            raise QuantityError(f"the range from {expect.between[0]} to {expect.between[1]} is empty")
