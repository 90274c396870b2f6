"""The depot's private registry: an authority of the lab's own, a certificate, and the one login."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

# Of ansible-core, which needs it for its vaults.
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: The login; the registry is on the lab's own network, with nothing in it that is not public.
USER, PASSWORD = "lab", "only-in-the-lab"
#: The login as the registry keeps it (bcrypt).
HTPASSWD = USER + ":$2b$05$Bw0lab1private2registeZc/juCaoBYpjhVFnG008ItpZYscn5s6\n"
#: Valid for every clock that reads them, as the packages' signatures are.
FROM, UNTIL = datetime(2025, 1, 1, tzinfo=UTC), datetime(2045, 1, 1, tzinfo=UTC)
AUTHORITY, CERTIFICATE, KEY = "ca.pem", "registry.pem", "registry.key"


@dataclass(frozen=True)
class Realm:
    """What the registry shows and what it is trusted by, as PEM texts."""

    authority: str
    certificate: str
    key: str


def ensure(directory: Path, name: str) -> Realm:
    """The realm that is kept in a directory, made when it is not there. name: the registry's host."""
    files = [directory / file for file in (AUTHORITY, CERTIFICATE, KEY)]
    if not all(file.exists() for file in files):
        directory.mkdir(parents=True, exist_ok=True)
        made = _make(name)
        for file, text in zip(files, (made.authority, made.certificate, made.key), strict=True):
            file.touch(mode=0o600)
            file.write_text(text, encoding="ascii")
    return Realm(*(file.read_text(encoding="ascii") for file in files))


def _make(name: str) -> Realm:
    signer, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, subject = _name("Boxwright lab authority"), _name(name)
    authority = (
        _builder(issuer, issuer, signer)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNING, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        _builder(issuer, subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return Realm(
        authority.public_bytes(pem).decode("ascii"),
        certificate.public_bytes(pem).decode("ascii"),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode(
            "ascii"
        ),
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


#: What an authority's key is for; Python from 3.13 on refuses one that does not say so.
_SIGNING = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(FROM)
        .not_valid_after(UNTIL)
    )
