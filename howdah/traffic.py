# SPDX-License-Identifier: Apache-2.0
"""Kinds of traffic: the senders and receivers of flows, as far as other modules depend on their properties.

A flow of a plan names the kinds of its ends (``traffic``, ``sink``); profile, plan, agent, tables, measures and judge
look properties up here instead of comparing names. Standard library only: guests read it, too.
"""

from __future__ import annotations

from dataclasses import field

from howdah.codec import planned


@planned
class TrafficKind:
    """The properties of every flow of a kind.

    ``single``: source and sink can be chosen independently. The agent writes and reads, and closes a socket when its
    last byte is acknowledged. Any other kind has a driver, the ``DRIVER`` of ``howdah/agent/traffic/NAME.py``.
    ``selectable``: allowed in ``traffic.source`` and ``traffic.sink`` of a profile.
    ``versions``: its programs, each with the command that prints the program's version.
    ``packages``: packages of the guest tree for programs that the default tree lacks.
    ``in_small_tree``: a guest tree without additional programs suffices.
    ``sender_connects``: the receiver cannot open the connection.
    ``control_connection``: its processes first talk on a connection of their own; the data connection begins with
    ``cookie_bytes``.
    ``opens_others``: its programs may open connections that are not flows of the plan.
    ``holds_sockets``: programs of the profile set the socket buffers and may pause at any time.
    ``copies``: its sink copies data to user space.
    ``needs_guest``, ``needs_time``: why it requires virtual time, or a duration instead of an amount of data; empty if
    it does not.
    """

    name: str
    single: bool = False
    selectable: bool = False
    versions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    in_small_tree: bool = False
    sender_connects: bool = False
    control_connection: bool = False
    cookie_bytes: int = 0
    opens_others: bool = False
    holds_sockets: bool = False
    copies: bool = False
    needs_guest: str = ""
    needs_time: str = ""


PROGRAM = "program"  # two programs, of the profile or of a QUIC stack
_KINDS = (
    TrafficKind("kernel", single=True, selectable=True, in_small_tree=True),
    TrafficKind(
        "iperf3",
        selectable=True,
        versions={"iperf3": ("iperf3", "--version")},
        in_small_tree=True,
        sender_connects=True,
        control_connection=True,
        cookie_bytes=37,  # COOKIE_SIZE of its iperf_api.h
        copies=True,
    ),
    TrafficKind("python", single=True, selectable=True, in_small_tree=True),
    TrafficKind("http", versions={"nginx": ("/usr/sbin/nginx", "-v"), "curl": ("curl", "--version")}, copies=True),
    TrafficKind(
        "flent",
        selectable=True,
        versions={"flent": ("flent", "--version"), "iperf": ("iperf", "--version")},
        packages=("flent", "iperf"),
        sender_connects=True,
        opens_others=True,
        needs_guest="flent's test is changed to use iperf, which is not done to a machine in real time",
        needs_time="flent's test runs for a time, not for an amount of data",
    ),
    TrafficKind(PROGRAM, opens_others=True, holds_sockets=True),
    TrafficKind("model"),  # in a simulator
    TrafficKind("recorded"),  # of a machine known only from a capture or a log
    TrafficKind("stack"),  # an end other than the kernel's TCP
)
TRAFFIC = {kind.name: kind for kind in _KINDS}
SELECTABLE = tuple(kind.name for kind in _KINDS if kind.selectable)
PAIRED = tuple(kind.name for kind in _KINDS if kind.selectable and not kind.single)  # with their own protocol
