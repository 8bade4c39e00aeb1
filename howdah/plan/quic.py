# SPDX-License-Identifier: Apache-2.0
"""QUIC stacks as pairs of programs: their Debian packages, their command lines, and the meaning of their qlog."""

from __future__ import annotations

from dataclasses import dataclass, field

from howdah.plan.traffic import ProgramEnd

_GUEST_AGENT = "/howdah/in/howdah/agent"
_CERTIFICATE = [
    "/usr/bin/openssl",
    "req",
    "-x509",
    "-newkey",
    "ed25519",  # signatures of constant length, so that all handshakes have equal packets
    "-nodes",
    "-subj",
    "/CN=howdah",
    "-set_serial",
    "1",
    "-days",
    "36500",
    "-keyout",
    "key.pem",
    "-out",
    "certificate.pem",
]
_RECEIVE_WINDOW_BYTES = 64 * 2**20  # large enough never to limit a flow
# ngtcp2's programs draw their first packet number from the processor (std::random_device), without a seed. It
# determines the lengths of packets, and so every row.
_FIRST_PACKET = "--initial-pkt-num=0"


@dataclass(frozen=True)
class QuicStack:
    """``algorithms`` maps the profile's names to those of the stack. ``bytes`` in ``client`` and ``server`` is the size
    of the requested object; other placeholders are those of programs (howdah/profile/traffic.py).

    ``detector`` is the stack's only reason (howdah/record/schema.py) to leave slow start without a loss.
    ``held_packet_bytes`` is the memory that a sender holds for each packet until the run ends.
    """

    name: str
    packages: tuple[str, ...]
    algorithms: dict[str, str]
    server: list[str]
    client: list[str]
    detector: str
    logs_padding: bool = True  # whether the lengths in its qlog include the padding of Initial packets
    environment: dict[str, str] = field(default_factory=dict)
    held_packet_bytes: int = 0


_NGTCP2 = QuicStack(
    name="ngtcp2",
    packages=("ngtcp2-client", "ngtcp2-server", "openssl"),
    # Its CUBIC and its Reno always use HyStart++ (RFC 9406).
    algorithms={"cubic": "cubic", "hystart-plus-plus-cubic": "cubic", "reno": "reno", "hystart-plus-plus": "reno"},
    server=[
        "/usr/sbin/gtlsserver",
        "--quiet",
        "--no-quic-dump",
        "--no-http-dump",
        "--qlog-dir={output}",
        "--cc={algorithm}",
        _FIRST_PACKET,
        "--max-dyn-length={bytes}",
        "{server_address}",
        "{port}",
        "key.pem",
        "certificate.pem",
    ],
    client=[
        "/usr/bin/gtlsclient",
        "--quiet",
        "--no-quic-dump",
        "--no-http-dump",
        "--exit-on-all-streams-close",
        _FIRST_PACKET,
        f"--max-data={_RECEIVE_WINDOW_BYTES}",
        f"--max-stream-data-bidi-local={_RECEIVE_WINDOW_BYTES}",
        f"--max-window={_RECEIVE_WINDOW_BYTES}",
        f"--max-stream-window={_RECEIVE_WINDOW_BYTES}",
        "{server_address}",
        "{port}",
        "https://{server_address}:{port}/{bytes}",
    ],
    detector="css-rounds",
)
_AIOQUIC_END = ["/usr/bin/python3", f"{_GUEST_AGENT}/quic/aioquic_end.py"]
_AIOQUIC = QuicStack(
    name="aioquic",
    packages=("openssl", "python3-aioquic"),
    algorithms={"cubic": "cubic", "reno": "reno"},
    server=[*_AIOQUIC_END, "server", "{server_address}", "{port}", "{bytes}", "{algorithm}", "{output}"],
    client=[*_AIOQUIC_END, "client", "{server_address}", "{port}", "{bytes}", str(_RECEIVE_WINDOW_BYTES)],
    detector="delay",
    logs_padding=False,
    # It writes its log at the end. Three events per packet, 3 kB as Python objects, exhausted a small guest's memory.
    held_packet_bytes=4096,
)
STACKS = {stack.name: stack for stack in (_NGTCP2, _AIOQUIC)}


def quic_programs(stack: QuicStack, object_bytes: int) -> tuple[ProgramEnd, ProgramEnd]:
    """Return client and server of a flow."""

    def end(command: list[str], *before: list[str]) -> ProgramEnd:
        filled = [text.replace("{bytes}", str(object_bytes)) for text in command]
        return ProgramEnd(filled, dict(stack.environment), [], own=False, signal="INT", before=list(before))

    return end(stack.client), end(stack.server, list(_CERTIFICATE))
