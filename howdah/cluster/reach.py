# SPDX-License-Identifier: Apache-2.0
"""TLS of a cluster: its own authority, and one certificate for scheduler, workers and clients.

Whoever has the key belongs to the cluster: Dask demands a certificate of this authority at both ends. A scheduler's
certificates are checked before Dask connects, because Dask reports only a timeout. Connections that leave this machine
require TLS, because whoever reaches a scheduler or worker can run programs on it.
"""

from __future__ import annotations

import datetime
import os
import socket
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from howdah.errors import HowdahError, explain
from howdah.publish.guard import LOOPBACK, is_loopback

AUTHORITY, CERTIFICATE, KEY = "ca.pem", "cluster.pem", "cluster.key"


def make_certificates(directory: Path, days: int) -> list[Path]:
    """Write the three files into a directory that has none of them. The authority's own key is not kept.

    Raise HowdahError if files exist or cannot be written.
    """
    files = [directory / name for name in (AUTHORITY, CERTIFICATE, KEY)]
    if there := [file for file in files if file.exists()]:
        raise HowdahError("there are certificates already", where=str(there[0]), hint="Name another directory.")
    authority_key, own_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name, own_name = _name("howdah cluster authority"), _name("howdah cluster")
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)
    end = begin + datetime.timedelta(days=days)

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        found = x509.CertificateBuilder().subject_name(subject).issuer_name(authority_name)
        found = found.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return found.not_valid_before(begin).not_valid_after(end)

    authority = builder(authority_name, authority_key)
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    own = builder(own_name, own_key).add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    contents = [
        authority.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        own.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        own_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    ]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, content in zip(files, contents, strict=True):
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if file.name == KEY else 0o644)
            with os.fdopen(handle, "wb") as opened:
                opened.write(content)
    except OSError as error:
        raise HowdahError(f"the certificates cannot be written: {explain(error)}", where=str(directory)) from error
    return files


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


_ANSWER_S = 5.0
_GREETING_S = 2.0  # without TLS, Dask's server sends first
_SAME = "Scheduler, workers and clients need the same directory of 'howdah cluster certificates'."


def require_tls(host: str, tls: object | None) -> None:
    """Raise HowdahError for an address beyond loopback without certificates."""
    if tls is None and not is_loopback(host):
        raise HowdahError(
            "whoever reaches this address could run programs on every machine of the cluster",
            where=host,
            hint="'howdah cluster certificates DIR' makes the certificates, --tls DIR uses them.",
        )


def host_of(scheduler: str) -> str:
    """Return HOST of ``tcp://HOST:PORT``."""
    return scheduler.partition("://")[2].rpartition(":")[0]


def own_host(scheduler: str) -> str:
    """Return this machine's address on the route to a scheduler, ``tcp://HOST:PORT``. Raise OSError without a route."""
    host, port = host_of(scheduler), scheduler.rpartition(":")[2]
    if is_loopback(host):
        return LOOPBACK
    family, kind, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:  # nothing is sent: the kernel chooses the route
        probe.connect(place)
        return str(probe.getsockname()[0])


def check_scheduler(address: str, tls: Path | None, limit_s: float) -> None:
    """Raise HowdahError if scheduler and certificates do not match, and OSError if nothing answers."""
    scheme, _, place = address.partition("://")
    if scheme == "tls" and tls is None:
        raise HowdahError(
            "this scheduler requires a certificate, and none was given",
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
            "this scheduler accepts only TLS", where=address, hint=f"Write tls://{place}, and --tls DIR. {_SAME}"
        )


def context_of(directory: Path) -> ssl.SSLContext:
    """Return the TLS context of a client with these certificates, without checking host names. Raise HowdahError for
    unusable certificates."""
    try:
        context = ssl.create_default_context(cafile=str(directory / AUTHORITY))
        context.check_hostname = False
        context.load_cert_chain(directory / CERTIFICATE, directory / KEY)
    except OSError as error:  # includes ssl.SSLError
        raise HowdahError(
            f"these certificates cannot be used: {explain(error)}",
            where=str(directory),
            hint="'howdah cluster certificates DIR' makes some.",
        ) from error
    return context


def _shake_hands(connection: socket.socket, address: str, tls: Path) -> None:
    try:
        with context_of(tls).wrap_socket(connection) as wrapped:
            wrapped.recv(1)  # a rejected client certificate is reported after the handshake
    except ssl.SSLCertVerificationError as error:
        raise HowdahError(
            f"the scheduler's certificate is not accepted: {error.verify_message}",
            where=f"{address}, {tls}",
            hint=_SAME,
        ) from error
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        if "alert" in reason:
            raise HowdahError(f"the scheduler refused our certificate: {reason}", where=str(tls), hint=_SAME) from error
        raise HowdahError(f"there is no TLS at this address: {reason}", where=address) from error
    except TimeoutError as error:
        raise HowdahError(
            "there is no TLS at this address: no answer",
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
        return "alert" in str(error.reason).lower()  # an alert, too, shows TLS
    except OSError:
        return False
