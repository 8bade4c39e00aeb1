# SPDX-License-Identifier: Apache-2.0
"""The fields of a profile that are about machines: the one of the ``vm`` engine, and those of several machines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from howdah.profile.field import FieldError, Section, Text, fixed


class MachineSection(Section):
    """The machine of the ``vm`` engine; the other engines have none."""

    shift: int = Field(
        default=0, ge=0, le=10, description="its processor executes 2 to the power of -shift instructions a nanosecond"
    )
    time: Literal["virtual", "real"] = Field(
        default="virtual",
        description="virtual: a processor of declared speed, and equal reruns; real: as fast as this machine runs it",
    )
    accelerator: Literal["auto", "kvm", "tcg"] = Field(
        default="auto", description="in real time: KVM where it runs a stock kernel, else emulation (tcg); or only one"
    )
    modules: Text | None = fixed(
        None, description="of a kernel given as an image: its lib/modules/RELEASE, relative to the profile"
    )
    headers: Text | None = fixed(
        None, description="of a kernel given as a file: its linux-headers package, or a tree modules are built against"
    )

    @model_validator(mode="after")
    def _one_clock(self) -> MachineSection:
        if self.time == "virtual" and self.accelerator == "kvm":
            raise FieldError("KVM has no virtual time; time: real has", "accelerator")
        if self.time == "real" and self.shift:
            raise FieldError("in real time the processor has no declared speed", "shift")
        return self


class MachineChoiceSection(Section):
    """Which machine of a role takes part."""

    kernel: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+~_-]{0,62}$")] | None = Field(
        default=None,
        description="a machine that runs this kernel: `debian-6.1`, `6.1`, or the full release; any by default",
    )


class MachinesSection(Section):
    """The machines of the ``machines`` engine, where a role has several; other engines have none."""

    sender: MachineChoiceSection = Field(
        default_factory=MachineChoiceSection, description="where the senders' hosts live"
    )
    emulator: MachineChoiceSection = Field(default_factory=MachineChoiceSection, description="where the routers live")
    receiver: MachineChoiceSection = Field(
        default_factory=MachineChoiceSection, description="where the receivers' hosts live"
    )

    def kernels(self) -> dict[str, str]:
        """What was asked for, by role."""
        asked = {name: getattr(self, name).kernel for name in ("sender", "emulator", "receiver")}
        return {role: kernel for role, kernel in asked.items() if kernel is not None}
