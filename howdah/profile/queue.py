# SPDX-License-Identifier: Apache-2.0
"""Queues of a hop, each with its own parameters: ``queue: red``, or ``{kind: red, burst: 20}``.

The sections are generated from the classes of howdah/linux/netlink/discipline, the only definition of each kind.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, create_model, model_validator

from howdah.linux.netlink.discipline import host_queues, queues
from howdah.linux.netlink.discipline.discipline import Discipline, HopQueue, HostQueue, Parameters
from howdah.profile.field import Buffer, FieldError, PositiveDuration, Ratio, Section

TAG = "kind"
_QUANTITIES: dict[str, Any] = {"duration": PositiveDuration, "buffer": Buffer, "share": Ratio}
_LITERAL: Any = Literal  # built at run time, like the union
_UNION: Any = Union
_DESCRIPTION = "a queue discipline, or a mapping of its kind and parameters; fifo drops at the tail"


class _Kind(Section):
    """A queue discipline and its parameters."""

    kind: str

    @property
    def asked(self) -> type[Parameters]:
        raise NotImplementedError

    def parameters(self) -> Parameters:
        return self.asked(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self.asked)})

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if wrong := self.parameters().wrong():
            field, why = wrong
            raise FieldError(why, field)
        return self


class QueueSection(_Kind):
    """The queue of a hop."""

    @property
    def discipline(self) -> type[HopQueue]:
        return queues()[self.kind]

    @property
    def asked(self) -> type[Parameters]:
        return self.discipline.asked


class HostQueueSection(_Kind):
    """The queue of a sender's interface."""

    @property
    def discipline(self) -> type[HostQueue]:
        return host_queues()[self.kind]

    @property
    def asked(self) -> type[Parameters]:
        return self.discipline.asked_of_host


def _field(field: dataclasses.Field[Any]) -> tuple[Any, Any]:
    said = field.metadata
    default = said["default"]
    extra: dict[str, Any] = {}
    kind: Any = int
    if said["quantity"]:
        kind = _QUANTITIES[said["quantity"]]
        if default is not None:
            extra, default = {"x-default": default}, TypeAdapter(kind).validate_python(default)
    elif said["choices"]:
        kind = _LITERAL[said["choices"]]
    elif isinstance(default, bool):
        kind = bool
    bounds = {"ge": said["least"], "le": said["most"]} if said["least"] is not None else {}
    described = Field(default, description=said["meaning"], json_schema_extra=extra or None, **bounds)
    return kind if default is not None else kind | None, described


def _section(kind: type[Discipline], name: str, asked: type[Parameters], base: type[_Kind]) -> type[Any]:
    fields: dict[str, Any] = {field.name: _field(field) for field in dataclasses.fields(asked)}
    fields[TAG] = (_LITERAL[name], Field(description="which queue this is"))
    made = f"{kind.__name__}{base.__name__}"
    return create_model(made, __base__=base, __doc__=asked.__doc__, __module__=__name__, **fields)


SECTIONS = {name: _section(kind, name, kind.asked, QueueSection) for name, kind in queues().items()}
HOST_SECTIONS = {
    name: _section(kind, name, kind.asked_of_host, HostQueueSection) for name, kind in host_queues().items()
}
# Unpickling finds a class by its name in the module.
globals().update({section.__name__: section for section in (*SECTIONS.values(), *HOST_SECTIONS.values())})


def _from_kind(value: Any) -> Any:
    if isinstance(value, dict) and TAG not in value:
        refuse_nested(value, "")
    return value if isinstance(value, dict | _Kind) else {TAG: value}


if TYPE_CHECKING:
    AnyQueue = QueueSection
    AnyHostQueue = HostQueueSection
else:
    AnyQueue = Annotated[_UNION[tuple(SECTIONS.values())], Field(discriminator=TAG), BeforeValidator(_from_kind)]
    AnyHostQueue = Annotated[
        _UNION[tuple(HOST_SECTIONS.values())], Field(discriminator=TAG), BeforeValidator(_from_kind)
    ]


def queue_field(whose: str) -> Any:
    return Field(
        default_factory=lambda: SECTIONS["fifo"](kind="fifo"),
        description=f"{whose}: {_DESCRIPTION}",
        json_schema_extra={"x-default": "fifo"},
    )


def host_queue_field() -> Any:
    return Field(
        default_factory=lambda: HOST_SECTIONS["fifo"](kind="fifo"),
        description="queue discipline of each sender's interface while flows run, or a mapping of its kind and "
        "parameters; fifo never drops",
        json_schema_extra={"x-default": "fifo"},
    )


def refuse_flat(path: Any) -> Any:
    """Return the data of a path. Raise FieldError if it has queue parameters beside ``queue`` instead of in it."""
    if isinstance(path, dict):
        refuse_nested(path, "path.queue: ")
    return path


def refuse_nested(section: dict[Any, Any], field: str) -> None:
    """Raise FieldError if a queue's parameters are below its name; the message shows the right form after ``field``."""
    flat = [name for name in SECTIONS if name in section]
    if not flat:
        return
    forms = [_form(name, section[name]) for name in flat]
    written = " or ".join(f"{field}{{{each}}}" for each, _ in forms)
    refused = "".join(dict.fromkeys(f"; {each}" for _, all_refused in forms for each in all_refused))
    raise FieldError(f"the parameters of a queue stand beside its kind; write {written}{refused}", flat[0])


def _form(kind: str, parameters: Any) -> tuple[str, list[str]]:
    """Return kind and parameters as a profile has them, without those that the queue refuses, and a reason for each of
    these."""
    pairs, refused = [f"{TAG}: {kind}"], []
    for name, value in parameters.items() if isinstance(parameters, dict) else ():
        try:
            SECTIONS[kind].model_validate({TAG: kind, name: value})
        except ValidationError as error:
            first = error.errors()[0]
            expected = str(first.get("ctx", {}).get("expected", "")).replace("'", "")
            unknown = f"{kind} has no {name}" if first["type"] == "extra_forbidden" else f"{name} cannot be {value!r}"
            refused.append(f"{name} is {expected}" if expected else unknown)
        else:
            pairs.append(f"{name}: {json.dumps(value) if isinstance(value, bool) else value}")
    return ", ".join(pairs), refused
