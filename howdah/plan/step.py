# SPDX-License-Identifier: Apache-2.0
"""Base classes of the steps that build a network and of those that change it. Standard library only.

Each step is a class (operation.py, placed.py, event.py): its fields are the step's arguments in plan.json, and its
docstring is its description in docs/data-format.md. It has equivalent commands, for people, and the agent's action.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from howdah.codec import decoded_fields, encoded_fields, planned
from howdah.linux.netlink.discipline.discipline import Words

if TYPE_CHECKING:
    from howdah.linux.namespace import Namespace


class KernelSettings(Protocol):
    """Writes settings of the whole kernel."""

    def write(self, path: Path, value: str) -> None: ...
    def parameter(self, module: str, name: str, value: str) -> None: ...


class BuiltNetwork(Protocol):
    """The network as far as it is built: its nodes by name, and the settings of the kernel."""

    @property
    def namespaces(self) -> dict[str, Namespace]: ...
    @property
    def settings(self) -> KernelSettings: ...
    def adopt(self, node: str, interface: str, mac: str, nic_mac: str, tag: int | None, *, ipv6: bool) -> None:
        """Move a NIC of the machine to a node."""


class ReadAsWritten:
    """A part of a plan with its own form in plan.json, also for pydantic, which validates plans of strangers."""

    has_time: ClassVar[bool] = False

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Any:
        """Raise TypeError or ValueError for an unknown step."""
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        from pydantic_core import core_schema as schema  # not available in guests

        form: dict[str, Any] = {"at_us": schema.int_schema()} if cls.has_time else {}
        form |= {"op": schema.str_schema(), "arguments": schema.dict_schema(schema.str_schema())}
        told = {name: schema.typed_dict_field(kind, required=True) for name, kind in form.items()}
        return schema.no_info_after_validator_function(cls.of_json, schema.typed_dict_schema(told))


class PlanStep:
    """One step. ``op`` is its name in plan.json."""

    op: ClassVar[str]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments as in plan.json."""
        return encoded_fields(self)

    @classmethod
    def of_arguments(cls, arguments: Mapping[str, Any]) -> Any:
        """Raise TypeError for wrong arguments, ValueError for a queue of an unknown kind."""
        return decoded_fields(cls, arguments)

    def as_json(self) -> dict[str, Any]:
        return {"op": self.op, "arguments": self.arguments()}


@planned
class Operation(PlanStep, ReadAsWritten):
    """One step that builds the network. ``known`` maps each name to its class."""

    known: ClassVar[dict[str, type[PlanStep]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "op" in vars(cls):
            Operation.known[cls.op] = cls

    def commands(self) -> list[Words]:
        """Return equivalent commands of ``ip``, ``tc``, ``ethtool`` or ``sysctl``, as words."""
        raise NotImplementedError

    def lines(self) -> list[str]:
        """Return the commands, quoted for a shell."""
        return list(map(quoted, self.commands()))

    def apply(self, to: BuiltNetwork) -> None:
        """Do it. Raise OSError if the kernel refuses."""
        raise NotImplementedError

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Operation:
        found: Operation = read_step(value, {"op", "arguments"}, Operation.known)
        return found


def read_step(value: Mapping[str, Any], names: set[str], known: Mapping[str, type[PlanStep]]) -> Any:
    """Return the step of plan.json, whose fields must have exactly these ``names``. Raise TypeError or ValueError."""
    if value.keys() != names:
        raise TypeError(f"a step has {', '.join(sorted(names))}, not {', '.join(sorted(value))}")
    kind = known.get(value["op"])
    if kind is None:
        raise ValueError(f"there is no operation {value['op']!r}; known: {', '.join(sorted(known))}")
    return kind.of_arguments(value["arguments"])


def quoted(words: Words) -> str:
    """Return a command as one line for a shell."""
    import shlex  # not needed in guests, which print no commands

    return " ".join(word if word == ">" else shlex.quote(word) for word in map(str, words))
