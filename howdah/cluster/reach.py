# SPDX-License-Identifier: Apache-2.0
"""Checks a scheduler's certificates before Dask connects, because Dask reports only a timeout. Demands TLS for each
connection that leaves this machine, because whoever reaches a scheduler or worker can run programs on it."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from howdah.cluster.certificate import AUTHORITY, CERTIFICATE, KEY
from howdah.errors import HowdahError, explain
from howdah.publish.guard import is_loopback

_ANSWER_S = 5.0
_GREETING_S = 2.0  # Dask's side speaks first, as soon as a connection without TLS stands
_SAME = "Scheduler, workers and clients need the same directory of 'howdah cluster certificates'."

LOOPBACK = "127.0.0.1"


def require_tls(host: str, tls: object | None) -> None:
    """Raises HowdahError for an address beyond loopback without certificates."""
    if tls is None and not is_loopback(host):
        raise HowdahError(
            "whoever reaches this address could run programs on every machine of the cluster",
            where=host,
            hint="'howdah cluster certificates DIR' makes the certificates, --tls DIR asks for them.",
        )


def host_of(scheduler: str) -> str:
    """HOST of ``tcp://HOST:PORT``."""
    return scheduler.partition("://")[2].rpartition(":")[0]


def own_host(scheduler: str) -> str:
    """The address of this machine at which a scheduler, ``tcp://HOST:PORT``, reaches it. Raises OSError."""
    host, port = host_of(scheduler), scheduler.rpartition(":")[2]
    if is_loopback(host):
        return LOOPBACK
    family, kind, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as asked:  # nothing is sent: the kernel chooses the way
        asked.connect(place)
        return str(asked.getsockname()[0])


def check_scheduler(address: str, tls: Path | None, limit_s: float) -> None:
    """Raises HowdahError where scheduler and certificates do not match, and OSError where nothing answers."""
    scheme, _, place = address.partition("://")
    if scheme == "tls" and tls is None:
        raise HowdahError(
            "this scheduler asks for a certificate, and none was given",
            where=address,
            hint="Name the directory of 'howdah cluster certificates' with --tls DIR or $HOWDAH_TLS.",
        )
    if scheme == "tcp" and tls is not None:
        raise HowdahError(
            "certificates were given, but this address has no TLS",
            where=address,
            hint=f"Write tls://{place}, or leave out --tls and $HOWDAH_TLS.",
        )
    host, _, port = place.rpartition(":")
    require_tls(host, tls)
    with socket.create_connection((host.strip("[]"), int(port)), timeout=limit_s) as connection:
        if tls is not None:
            connection.settimeout(_ANSWER_S)
            _shake_hands(connection, address, tls)
            return
        connection.settimeout(_GREETING_S)
        greeted = _greets(connection)
    if not greeted and _asks_for_tls(host.strip("[]"), int(port), limit_s):
        raise HowdahError(
            "this scheduler speaks TLS alone", where=address, hint=f"Write tls://{place}, and --tls DIR. {_SAME}"
        )


def context_of(directory: Path) -> ssl.SSLContext:
    """The TLS context of a client with these certificates, which ignores names of hosts. Raises HowdahError."""
    try:
        context = ssl.create_default_context(cafile=str(directory / AUTHORITY))
        context.check_hostname = False
        context.load_cert_chain(directory / CERTIFICATE, directory / KEY)
    except OSError as error:  # ssl.SSLError is one
        raise HowdahError(
            f"these certificates cannot be used: {explain(error)}",
            where=str(directory),
            hint="'howdah cluster certificates DIR' makes some.",
        ) from error
    return context


def _shake_hands(connection: socket.socket, address: str, tls: Path) -> None:
    try:
        with context_of(tls).wrap_socket(connection) as wrapped:
            wrapped.recv(1)  # whether our certificate is taken is told after the handshake
    except ssl.SSLCertVerificationError as error:
        raise HowdahError(
            f"the scheduler's certificate is not accepted: {error.verify_message}",
            where=f"{address}, {tls}",
            hint=_SAME,
        ) from error
    except ssl.SSLError as error:
        said = (error.reason or str(error)).replace("_", " ").lower()
        if "alert" in said:
            raise HowdahError(f"the scheduler refused our certificate: {said}", where=str(tls), hint=_SAME) from error
        raise HowdahError(f"there is no TLS at this address: {said}", where=address) from error
    except TimeoutError as error:
        raise HowdahError(
            "there is no TLS at this address: nothing was answered",
            where=address,
            hint=f"Was the scheduler started with --tls? Without it its address is tcp://{address.partition('://')[2]}.",
        ) from error


def _greets(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1))
    except TimeoutError:
        return False


def _asks_for_tls(host: str, port: int, limit_s: float) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout=limit_s) as connection, context.wrap_socket(connection):
            return True
    except ssl.SSLError as error:
        return "alert" in str(error.reason).lower()  # of TLS, too
    except OSError:
        return False
