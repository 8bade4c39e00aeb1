# SPDX-License-Identifier: Apache-2.0
"""Kinds of traffic: what sends and receives a flow, as far as profile, plan, agent, tables, measures and judge depend
on it.

A flow of a plan names the kinds of its ends (``traffic``, ``sink``), so nothing downstream compares those names.
Standard library only: guests read it, too.
"""

from __future__ import annotations

from dataclasses import field

from howdah.codec import planned


@planned
class TrafficKind:
    """What holds for every flow of a kind.

    ``single``: source and sink are chosen each on its own. The agent writes and reads, and closes a socket when its
    last byte is acknowledged. Any other kind has a driver, the ``DRIVER`` of ``howdah/agent/traffic/NAME.py``.
    ``asked``: ``traffic.source`` and ``traffic.sink`` of a profile can be it.
    ``versions``: its programs, each with the command that says the program's version.
    ``packages``: of the guest tree, where the usual one lacks its programs.
    ``in_small_tree``: a guest tree without further programs has all that it needs.
    ``sender_connects``: the receiver cannot open the connection.
    ``control_connection``: its processes talk on a connection of their own first, and the data's begins with
    ``cookie_bytes``.
    ``opens_others``: its programs may open connections that are no flow.
    ``holds_sockets``: programs of the profile set the sockets' buffers and pause when they like.
    ``copies``: its sink copies data to user space.
    ``needs_guest``, ``needs_time``: why it runs in virtual time alone, and for a time alone; empty where it does not.
    """

    name: str
    single: bool = False
    asked: bool = False
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


PROGRAM = "program"  # two programs of the profile, or of a QUIC stack
_KINDS = (
    TrafficKind("kernel", single=True, asked=True, in_small_tree=True),
    TrafficKind(
        "iperf3",
        asked=True,
        versions={"iperf3": ("iperf3", "--version")},
        in_small_tree=True,
        sender_connects=True,
        control_connection=True,
        cookie_bytes=37,  # COOKIE_SIZE of its iperf_api.h
        copies=True,
    ),
    TrafficKind("python", single=True, asked=True, in_small_tree=True),
    TrafficKind("http", versions={"nginx": ("/usr/sbin/nginx", "-v"), "curl": ("curl", "--version")}, copies=True),
    TrafficKind(
        "flent",
        asked=True,
        versions={"flent": ("flent", "--version"), "iperf": ("iperf", "--version")},
        packages=("flent", "iperf"),
        sender_connects=True,
        opens_others=True,
        needs_guest="flent's test is changed to use iperf, which is not done to a machine in real time",
        needs_time="flent's test runs for a time, not for an amount of data",
    ),
    TrafficKind(PROGRAM, opens_others=True, holds_sockets=True),
    TrafficKind("model"),  # of a simulator
    TrafficKind("recorded"),  # of a machine that only a capture or a log is known of
    TrafficKind("stack"),  # an end that is not the kernel's TCP
)
TRAFFIC = {kind.name: kind for kind in _KINDS}
ASKED = tuple(kind.name for kind in _KINDS if kind.asked)
PAIRED = tuple(kind.name for kind in _KINDS if kind.asked and not kind.single)  # with a protocol of their own
