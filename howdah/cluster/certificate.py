# SPDX-License-Identifier: Apache-2.0
"""TLS certificates of a cluster: an authority of its own, and one certificate for its scheduler, workers and clients.

Whoever has the key belongs to the cluster: Dask demands a certificate of this authority at both ends.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from howdah.errors import HowdahError, explain

AUTHORITY, CERTIFICATE, KEY = "ca.pem", "cluster.pem", "cluster.key"


def make_certificates(directory: Path, days: int) -> list[Path]:
    """Write the three files into a directory that has none of them. The authority's own key is not kept.

    Raises HowdahError if files exist, or cannot be written.
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
