# SPDX-License-Identifier: Apache-2.0
"""The lab file: machines of one's own, what each is for, and the links between them. docs/lab.md describes it."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from howdah.errors import ProfileError
from howdah.profile.field import Name, Text
from howdah.profile.report import profile_error
from howdah.profile.section import FieldError, Section
from howdah.profile.source import read_document

# Names of groups and of what Ansible itself defines, which no host may have.
GROUPS = ("all", "ungrouped", "senders", "emulators", "receivers", "monitors", "linux", "freebsd", "windows")
DISTRIBUTION = "distribution"

InterfaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,62}$")]
UserName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9._-]{0,31}$")]
PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9.+~_-]{0,126}$")]


class HostSection(Section):
    """One machine. ``links`` are its interfaces in the lab with their addresses, ``address`` the way to it by SSH."""

    role: Literal["sender", "emulator", "receiver"]
    address: Text = Field(description="where SSH reaches it: an address or a name")
    port: int = Field(default=22, ge=1, le=65535, description="of its SSH server")
    user: UserName = Field(default="root", description="who logs in; anyone but root must be allowed to become root")
    system: Literal["linux", "freebsd", "windows"] = "linux"
    kernel: PackageName = Field(
        default=DISTRIBUTION, description="a package of the distribution that holds a kernel; its own newest by default"
    )
    links: dict[InterfaceName, Text] = Field(default_factory=dict, description="interface: address/length")
    control: InterfaceName | None = Field(default=None, description="the link of monitoring; loopback alone without it")
    image: Text | None = Field(default=None, description="a disk image of yours, relative to the lab file")

    @field_validator("address")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        if (
            not value
            or value.startswith("-")
            or any(character.isspace() or not character.isprintable() for character in value)
        ):
            raise ValueError(f"expected an address or a host name, not {value!r}")
        return value

    @field_validator("links")
    @classmethod
    def _addresses(cls, value: dict[str, str]) -> dict[str, str]:
        for interface, written in value.items():
            try:
                parsed = ipaddress.ip_interface(written)
            except ValueError:
                raise FieldError(
                    f"expected an address with its length such as 10.10.1.1/24, not {written!r}", interface
                ) from None
            if "/" not in written:
                raise FieldError(f"the length is missing: {written}/24, perhaps", interface)
            if parsed.is_unspecified or parsed.is_multicast or parsed.is_loopback:
                raise FieldError(f"{written} is no address of a link", interface)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> HostSection:
        if self.control is not None and self.control not in self.links:
            has = ", ".join(self.links) or "it has none"
            raise FieldError(f"{self.control} is none of the host's links ({has})", "control")
        if self.system != "linux" and self.role != "receiver":
            raise FieldError(f"a host with {self.system} can only be a receiver", "role")
        if self.system != "linux" and self.kernel != DISTRIBUTION:
            raise FieldError(f"the kernel of {self.system} cannot be chosen", "kernel")
        if self.system == "linux" and self.image is not None:
            raise FieldError("images are for freebsd and windows; a host with Linux is installed already", "image")
        return self

    @property
    def listen_address(self) -> str:
        """Where its exporters listen: its address on the link of monitoring, else loopback."""
        return str(ipaddress.ip_interface(self.links[self.control]).ip) if self.control else "127.0.0.1"


class Lab(Section):
    """The whole lab. Raises ValidationError for hosts that cannot work together."""

    name: Name
    hosts: dict[Name, HostSection] = Field(min_length=1)
    monitor: Name | None = Field(default=None, description="the host on which Prometheus runs")

    @model_validator(mode="after")
    def _hosts_fit(self) -> Lab:
        owners: dict[str, str] = {}
        for name, host in self.hosts.items():
            if name in GROUPS:
                raise FieldError(f"{name!r} is the name of a group; choose another for the host", "hosts", name)
            for interface, written in host.links.items():
                address = str(ipaddress.ip_interface(written).ip)
                if address in owners:
                    raise FieldError(
                        f"{address} is also an address of {owners[address]}", "hosts", name, "links", interface
                    )
                owners[address] = name
        if self.monitor is not None:
            watcher = self.hosts.get(self.monitor)
            if watcher is None:
                raise FieldError(f"there is no host {self.monitor!r}; hosts: {', '.join(self.hosts)}", "monitor")
            if watcher.system != "linux":
                raise FieldError(f"Prometheus runs on a host with Linux, not on {watcher.system}", "monitor")
        return self

    def watched(self) -> list[str]:
        """Hosts whose exporters the monitor can reach: itself, and those with a link of monitoring."""
        if self.monitor is None:
            return []
        return [
            name
            for name, host in self.hosts.items()
            if host.system == "linux" and (name == self.monitor or host.control is not None)
        ]


def load_lab(path: Path) -> Lab:
    """Read and check a lab file. Raises ProfileError with file and line, what was expected and the nearest name."""
    if not path.exists():
        raise ProfileError(
            "there is no such lab file", where=str(path), hint="playbooks/labs/example.yaml is one to begin with"
        )
    document = read_document(path)
    try:
        lab = Lab.model_validate(document.data)
    except ValidationError as error:
        raise profile_error(error, document, {}, model=Lab) from None
    for name, host in lab.hosts.items():
        if host.image is not None and not (path.resolve().parent / host.image).is_file():
            raise ProfileError(
                f"hosts.{name}.image: there is no file {host.image}",
                where=document.place(("hosts", name, "image")),
                hint="the path counts from the lab file; no image comes with howdah",
            )
    return lab
