# SPDX-License-Identifier: Apache-2.0
"""Read a run directory that may come from other people: damaged, cut off, or written by another version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from howdah.codec import mistyped
from howdah.errors import RecordError
from howdah.foreign import read_foreign
from howdah.plan.named import check_names
from howdah.plan.placed import Class, PlacedQueue
from howdah.plan.plan import Plan, of_today
from howdah.record.directory import read_json
from howdah.record.metrics import Metrics
from howdah.record.model import HINT, adapter
from howdah.record.references import check_references
from howdah.record.run import RunRecord
from howdah.record.verdict import Verdict

_LEFT_OUT: Any = None  # default of a field that may be missing; if present, it must have its type
_Span = Annotated[list[int], Field(min_length=2, max_length=2)]
_Step = Annotated[list[float], Field(min_length=2, max_length=2)]


class _Opened(BaseModel):
    """Parts of the plan whose types are open, and which later stages access by name or index."""

    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)


class _Asked(_Opened):
    source: str | None = _LEFT_OUT


class _Variation(_Opened):
    asked: _Asked = _LEFT_OUT


class _Flow(_Opened):
    bursts: list[_Span] = _LEFT_OUT


class _Path(_Opened):
    rate_steps: list[_Span] = _LEFT_OUT
    reverse_rate_steps: list[_Span] = _LEFT_OUT
    forward_loss_steps: list[_Step] = _LEFT_OUT
    reverse_loss_steps: list[_Step] = _LEFT_OUT
    delay_variation: _Variation | None = _LEFT_OUT


class _OpenPlan(_Opened):
    path: _Path
    flows: list[_Flow]


def prepare(*further: type) -> None:
    """Build the validators of a run's files, and of ``further`` types, so that forked processes have them."""
    for kind in (Plan, _OpenPlan, RunRecord, Metrics, Verdict, *further):
        made = adapter(kind)
        if hasattr(made, "rebuild"):  # since pydantic 2.10, validators are built at first use
            made.rebuild()


def read_plan_file(path: Path) -> Plan:
    """Read and check plan.json: the types of all fields, and that everything it names exists."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise RecordError("this is not a plan", where=str(path), hint=HINT)
    try:
        content = read_foreign(path)
        today = of_today(value)
        text = content if today is value else json.dumps(today)
        adapter(Plan).validate_json(text, strict=True)  # its errors name the place of what is wrong
        plan = Plan.from_json(content.decode())
        adapter(_OpenPlan).validate_python(today)
        check_steps(plan)
        _check_numbers(plan)
        check_references(plan)
        check_names(plan)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RecordError(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}", where=str(path), hint=HINT) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecordError(f"the plan cannot be read: {error}", where=str(path), hint=HINT) from None
    return plan


def check_steps(plan: Plan) -> None:
    """Raise ValueError if an operation or an event has a value of a wrong type, or a negative number."""
    steps = [(f"operation {number}", step) for number, step in enumerate(plan.operations)]
    for what, step in [*steps, *((f"event {number}", event.change) for number, event in enumerate(plan.timeline))]:
        options = [step.discipline] if isinstance(step, PlacedQueue) else [step.rate] if isinstance(step, Class) else []
        for part in [step, *options]:
            for name in mistyped(part):
                raise ValueError(f"{name} of {what} ({step.op}) is of another type")
            for name, value in vars(part).items():
                if isinstance(value, (int, float)) and value < 0:
                    raise ValueError(f"{name} of {what} ({step.op}) is negative")


def _check_numbers(plan: Plan) -> None:
    if len({flow.id for flow in plan.flows}) != len(plan.flows):
        raise ValueError("two flows have the same number")
    sizes = {name: getattr(plan.path, name) for name in ("rtt_us", "rate_bits_per_second", "mss_bytes", "frame_bytes")}
    of_calibration = ("rate_bits_per_second", "frame_bytes")
    sizes |= {f"calibration.{name}": getattr(plan.calibration, name) for name in of_calibration}
    sizes |= {f"rtt_us of flow {flow.id}": flow.rtt_us for flow in plan.flows}
    for name, value in {"duration_us": plan.duration_us, **sizes}.items():
        if value <= 0:
            raise ValueError(f"{name} is {value}, and not above 0")
    for name in ("loss_ratio", "reverse_loss_ratio", "reorder_ratio"):
        if not 0 <= getattr(plan.path, name) <= 1:
            raise ValueError(f"path.{name} is {getattr(plan.path, name)}, and not from 0 to 1")
