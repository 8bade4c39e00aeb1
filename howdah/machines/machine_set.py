# SPDX-License-Identifier: Apache-2.0
"""The machines file: real or virtual machines and the links between them. docs/machines.md describes it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from howdah.default import DEFAULT_KERNEL
from howdah.errors import ProfileError
from howdah.machines.qemu import AUTO, MOST_DILATION
from howdah.place import PLAYBOOKS
from howdah.profile.field import Bytes, FieldError, Name, Section, Text
from howdah.profile.report import profile_error
from howdah.profile.source import Document, Path_, read_document
from howdah.profile.written import written_path

CONTROL = "control"  # interface of the monitoring link in every virtual machine
MANAGE = "manage"  # interface for SSH
_RESERVED = (CONTROL, MANAGE, "lo")

# The kernel limits names to 15 characters; in a virtual machine the interface has the wire's name.
WireName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,14}$")]


@dataclass(frozen=True)
class End:
    """One end of a wire: a host and the name of its interface there."""

    host: str
    interface: str


def parse_end(written: str, wire: str, *, virtual: bool) -> End:
    """Parse ``HOST`` for virtual machines, whose interface has the wire's name, or ``HOST:INTERFACE`` for real ones.

    Raises ValueError with a message for the user.
    """
    host, colon, interface = written.partition(":")
    if virtual:
        if colon:
            raise ValueError(f"with virtual machines the interface has the wire's name; write {host}, not {written!r}")
        if wire in _RESERVED:
            raise ValueError(f"a wire cannot be called {wire}: every machine has an interface of that name")
        return End(host, wire)
    if not host or not interface:
        raise ValueError(f"expected HOST:INTERFACE, not {written!r}")
    return End(host, interface)


# Names of groups, and names that Ansible itself defines: no host may have them.
GROUPS = ("all", "ungrouped", "senders", "emulators", "receivers", "monitors", "linux", "freebsd", "windows")
DISTRIBUTION = "distribution"
_CONTROL_NETWORK = ipaddress.ip_network("10.99.0.0/24")  # monitoring link of virtual machines; not routed
LEAST_MEMORY_BYTES = 256 * 2**20

InterfaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,62}$")]
UserName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9._-]{0,31}$")]
_PACKAGE_NAME = re.compile(r"[a-z0-9][A-Za-z0-9.+~_-]{0,126}")
STOCK_KERNEL = re.compile(r"debian-(\d+\.\d+|newest)")


class VirtualSection(Section):
    """Present if the machines are virtual ones of this machine; defaults for hosts."""

    kernel: Text = Field(default=DEFAULT_KERNEL, description="debian-VERSION, debian-newest, or a path of your own")
    memory: Bytes = Field(default=512 * 2**20, description="of each machine")
    processors: int = Field(default=1, ge=1, le=64, description="of each machine")
    dilation: int | str = Field(
        default=AUTO,
        description="how many seconds a second of the machines lasts; auto: 8 where they are emulated, more for many",
    )
    taps: bool = Field(default=False, description="wires are bridges and taps of this machine's kernel; needs root")

    @field_validator("dilation", mode="before")
    @classmethod
    def _factor(cls, value: object) -> object:
        if value == AUTO or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_DILATION):
            return value
        raise ValueError(f"expected {AUTO} or a whole number from 1 to {MOST_DILATION}, not {value!r}")


class MachineHostSection(Section):
    """One machine. ``links`` maps its interfaces to their addresses, ``address`` is for SSH."""

    role: Literal["sender", "emulator", "receiver"]
    address: Text | None = Field(default=None, description="where SSH reaches it: an address or a name")
    port: int | None = Field(default=None, ge=1, le=65535, description="of its SSH server; 22 by default")
    user: UserName = Field(default="root", description="who logs in; anyone but root must be allowed to become root")
    system: Literal["linux", "freebsd", "windows"] = "linux"
    kernel: Text | None = Field(
        default=None, description="a package of the distribution that holds a kernel; its own newest by default"
    )
    memory: Bytes | None = Field(default=None, description="of a virtual machine")
    processors: int | None = Field(default=None, ge=1, le=64, description="of a virtual machine")
    links: dict[InterfaceName, Text] = Field(default_factory=dict, description="interface: address/length")
    control: InterfaceName | None = Field(default=None, description="the monitoring link; without it, loopback only")
    image: Text | None = Field(default=None, description="your own disk image, relative to the machines file")

    @field_validator("address")
    @classmethod
    def _plain_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        odd = any(character.isspace() or not character.isprintable() for character in value)
        if not value or value.startswith("-") or odd:
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
                raise FieldError(f"{written} is not the address of a link", interface)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> MachineHostSection:
        if self.control is not None and self.control not in self.links:
            has = ", ".join(self.links) or "it has none"
            raise FieldError(f"{self.control} is not one of the host's links ({has})", "control")
        if self.system != "linux" and self.role != "receiver":
            raise FieldError(f"a host with {self.system} can only be a receiver", "role")
        if self.system != "linux" and self.kernel is not None:
            raise FieldError(f"the kernel of {self.system} cannot be chosen", "kernel")
        return self

    @property
    def ssh_port(self) -> int:
        return self.port or 22

    @property
    def listen_address(self) -> str:
        """The address on which its exporters listen: that on the monitoring link, otherwise loopback."""
        return str(ipaddress.ip_interface(self.links[self.control]).ip) if self.control else "127.0.0.1"


class MachineSet(Section):
    """The whole machine set. Raises ValidationError for hosts that cannot work together."""

    name: Name
    virtual: VirtualSection | None = Field(default=None, description="the machines are virtual ones of this machine")
    hosts: dict[Name, MachineHostSection] = Field(min_length=1)
    wires: dict[WireName, list[Text]] = Field(default_factory=dict, description="name: its two ends")
    monitor: Name | None = Field(default=None, description="the host on which Prometheus runs")

    @model_validator(mode="after")
    def _hosts_fit(self) -> MachineSet:
        owners: dict[str, str] = {}
        for name, host in self.hosts.items():
            if name in GROUPS:
                raise FieldError(f"{name!r} is the name of a group; choose another for the host", "hosts", name)
            if self.virtual is None:
                _check_real(name, host)
            else:
                _check_virtual(name, host)
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
            if self.virtual is not None and watcher.image is not None:
                raise FieldError("a virtual machine with your own image gets no monitoring link", "monitor")
        self._wires_fit()
        return self

    def _wires_fit(self) -> None:
        taken: dict[End, str] = {}
        for wire, written in self.wires.items():
            if len(written) != 2:
                raise FieldError(f"a wire has two ends, not {len(written)}", "wires", wire)
            for number, text in enumerate(written):
                try:
                    end = parse_end(text, wire, virtual=self.virtual is not None)
                except ValueError as error:
                    raise FieldError(str(error), "wires", wire, number) from None
                if end.host not in self.hosts:
                    hosts = ", ".join(self.hosts)
                    raise FieldError(f"there is no host {end.host!r}; hosts: {hosts}", "wires", wire, number)
                if end in taken:
                    raise FieldError(f"{text} is an end of {taken[end]} already", "wires", wire, number)
                taken[end] = wire
        for name, host in self.hosts.items():
            for interface in host.links if self.virtual is not None else ():
                if End(name, interface) not in taken and interface != CONTROL:
                    raise FieldError(f"no wire of that name ends at {name}", "hosts", name, "links", interface)

    def ends(self, wire: str) -> tuple[End, End]:
        one, other = (parse_end(text, wire, virtual=self.virtual is not None) for text in self.wires[wire])
        return one, other

    def interfaces(self, host: str) -> dict[str, str]:
        """Return the host's interface for each wire that ends at it."""
        ends = ((wire, end) for wire in self.wires for end in self.ends(wire))
        return {wire: end.interface for wire, end in ends if end.host == host}

    def watched(self) -> list[str]:
        """Return the hosts whose exporters the monitor can reach: itself, and those with a monitoring link."""
        if self.monitor is None:
            return []
        return [
            name
            for name, host in self.hosts.items()
            if host.system == "linux" and (name == self.monitor or host.control is not None)
        ]

    def with_derived_values(self) -> MachineSet:
        """Return the set with derived values: addresses of virtual machines, and their monitoring link."""
        if self.virtual is None:
            return self
        hosts = {}
        for number, (name, host) in enumerate(self.hosts.items(), 1):
            own: dict[str, object] = {"address": "127.0.0.1"}
            if self.monitor is not None and host.image is None:
                there = f"{_CONTROL_NETWORK[number]}/{_CONTROL_NETWORK.prefixlen}"
                own |= {"control": CONTROL, "links": {**host.links, CONTROL: there}}
            hosts[name] = host.model_copy(update=own)
        return self.model_copy(update={"hosts": hosts})


def _check_real(name: str, host: MachineHostSection) -> None:
    if host.address is None:
        raise FieldError("the field 'address' is missing", "hosts", name)
    for field in ("memory", "processors"):
        if getattr(host, field) is not None:
            raise FieldError(
                "this is for virtual machines; the machine set has no section 'virtual'", "hosts", name, field
            )
    if host.kernel is not None and not _PACKAGE_NAME.fullmatch(host.kernel):
        raise FieldError(f"expected the name of a package, not {host.kernel!r}", "hosts", name, "kernel")
    if host.system == "linux" and host.image is not None:
        raise FieldError(
            "images are for freebsd and windows, and for virtual machines; a real host with Linux is installed already",
            *("hosts", name, "image"),
        )


def _check_virtual(name: str, host: MachineHostSection) -> None:
    for field in ("address", "port", "control"):
        if getattr(host, field) is not None:
            raise FieldError("a virtual machine gets this automatically", "hosts", name, field)
    for interface in (CONTROL, MANAGE):
        if interface in host.links:
            raise FieldError("a virtual machine gets this link automatically", "hosts", name, "links", interface)
    if host.system != "linux" and host.image is None:
        raise FieldError(f"a virtual machine with {host.system} needs your own image", "hosts", name)
    if host.image is not None and host.kernel is not None:
        raise FieldError("an image boots its own kernel", "hosts", name, "kernel")
    if host.memory is not None and host.memory < LEAST_MEMORY_BYTES:
        raise FieldError("a machine needs 256 MiB at the least", "hosts", name, "memory")


def load_machine_set(path: Path) -> MachineSet:
    """Read and check a machines file. Raises ProfileError with file, line, what was expected and the nearest name."""
    if not path.exists():
        raise ProfileError(
            "there is no such machines file",
            where=str(path),
            hint=f"{PLAYBOOKS / 'machines' / 'example.yaml'} is an example to start from",
        )
    document = read_document(path, "machines file")
    try:
        machine_set = MachineSet.model_validate(document.data)
    except ValidationError as error:
        raise profile_error(error, document, {}, model=MachineSet) from None
    for name, host in machine_set.hosts.items():
        if (
            host.image is not None
            and not written_path(path.resolve().parent, host.image, document.place(("hosts", name, "image"))).is_file()
        ):
            raise ProfileError(
                f"hosts.{name}.image: there is no file {host.image}",
                where=document.place(("hosts", name, "image")),
                hint="the path counts from the machines file; no image comes with howdah",
            )
    if machine_set.virtual is not None:
        _check_kernels(machine_set, machine_set.virtual, path, document)
    return machine_set.with_derived_values()


def _check_kernels(machine_set: MachineSet, virtual: VirtualSection, path: Path, document: Document) -> None:
    places: list[tuple[Path_, str | None]] = [(("virtual", "kernel"), virtual.kernel)]
    places += [(("hosts", name, "kernel"), host.kernel) for name, host in machine_set.hosts.items()]
    for place, kernel in places:
        if (
            kernel is None
            or STOCK_KERNEL.fullmatch(kernel)
            or written_path(path.resolve().parent, kernel, document.place(place)).exists()
        ):
            continue
        raise ProfileError(
            f"{'.'.join(map(str, place))}: there is no kernel {kernel!r}",
            where=document.place(place),
            hint="expected debian-VERSION (debian-6.12), debian-newest, a kernel package (.deb) or a directory with "
            "boot/vmlinuz-RELEASE and lib/modules/RELEASE; a path counts from the machines file",
        )
