"""An authority of one's own, beside the inventory: it vouches for the gateways, and clients trust its ca.pem.

Made on the controller; its key never leaves it. Certificates of gateways are renewed by the run that finds
them near their end.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from boxwright.errors import EXIT_BAD_INPUT, UserError

#: Beside the inventory's lock.
DIRECTORY = ".boxwright-ca"
CA, CA_KEY = "ca.pem", "ca.key"
AUTHORITY_DAYS, DAYS, RENEWED_DAYS = 3650, 397, 30
#: A clock that is behind shall take a new certificate too, in hours.
EARLIER_H = 24
_NAME = re.compile(
    r"(?=.{1,253}$)(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)


def bundle(directory: Path, host: str, names: Sequence[str], now: datetime.datetime) -> str:
    """The certificate of a gateway and its key, as PEM; made, or made anew, where that is due.

    names: DNS names and addresses by which clients know it. Raises UserError where the files cannot be used.
    """
    wanted = list(dict.fromkeys(name for name in names if name))
    _refuse([name for name in wanted if not _NAME.fullmatch(name) and not _address(name)])
    path = directory / f"gateway-{host.replace('/', '_')}.pem"
    try:
        _private(directory)
        authority, key = _authority(directory, now)
        if path.exists():
            text = path.read_text(encoding="ascii")
            if _good(text, authority, wanted, now):
                return text
        text = _issued(authority, key, wanted, now)
        _write(path, text, 0o600)
    except (OSError, ValueError) as error:
        raise UserError(
            f"the authority of the gateways cannot be used: {error}",
            where=str(directory),
            ways_out=(
                f"mend it, or move {DIRECTORY} away: another one is made, which clients have to be given",
                "give a certificate of your own: gateway_certificate and gateway_certificate_key",
            ),
        ) from error
    return text


def given(certificate: str, key: str, now: datetime.datetime) -> str:
    """A declared certificate and its key as one PEM. Raises UserError where they cannot be used together."""
    try:
        first = x509.load_pem_x509_certificates(certificate.encode("ascii"))[0]
        private = serialization.load_pem_private_key(key.encode("ascii"), None)
    except (ValueError, TypeError, IndexError) as error:
        raise _unusable("one of them is no PEM that can be read (a key with a password cannot)") from error
    if _public(private.public_key()) != _public(first.public_key()):
        raise _unusable("the key is another certificate's")
    if first.not_valid_after_utc <= now:
        raise _unusable(f"the certificate ended on {first.not_valid_after_utc:%Y-%m-%d}")
    return f"{certificate.strip()}\n{key.strip()}\n"


def _unusable(why: str) -> UserError:
    return UserError(
        f"gateway_certificate and gateway_certificate_key cannot be used: {why}",
        status=EXIT_BAD_INPUT,
        ways_out=("give a chain and its key as PEM", "leave both out: an authority of your own is made"),
    )


def _refuse(strangers: Sequence[str]) -> None:
    if strangers:
        raise UserError(
            f"no name or address of a gateway: {', '.join(map(repr, strangers))}",
            status=EXIT_BAD_INPUT,
            ways_out=("gateway_names: DNS names and IP addresses, as clients write them",),
        )


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _public(key: object) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.DER, form)  # type: ignore[attr-defined,no-any-return]


def _private(directory: Path) -> None:
    """The directory, and that git leaves its keys alone."""
    directory.mkdir(mode=0o700, exist_ok=True)
    ignore = directory / ".gitignore"
    if not ignore.exists():
        _write(ignore, "# Keys: not for any repository.\n*\n", 0o644)


def _authority(
    directory: Path, now: datetime.datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    path, key_path = directory / CA, directory / CA_KEY
    if path.exists():
        key = serialization.load_pem_private_key(key_path.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{CA_KEY} is no key of this authority")
        return x509.load_pem_x509_certificate(path.read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Boxwright gateways")])
    made = (
        _begun(name, name, key, now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    # The key first: a certificate without its key would be taken for a whole authority.
    _write(key_path, _text(key), 0o600)
    _write(path, made.public_bytes(serialization.Encoding.PEM).decode("ascii"), 0o644)
    return made, key


def _good(text: str, authority: x509.Certificate, names: Sequence[str], now: datetime.datetime) -> bool:
    """Whether a kept certificate is this authority's, for these names, and far from its end."""
    kept = x509.load_pem_x509_certificate(text.encode("ascii"))
    shown = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    try:
        kept.verify_directly_issued_by(authority)
    except Exception:  # whatever is wrong with it, another one is made
        return False
    return shown == _names(names) and kept.not_valid_after_utc - now > datetime.timedelta(days=RENEWED_DAYS)


def _issued(
    authority: x509.Certificate,
    signer: ec.EllipticCurvePrivateKey,
    names: Sequence[str],
    now: datetime.datetime,
) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    made = (
        _begun(subject, authority.subject, key, now, DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_names(names), critical=False)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode("ascii") + _text(key)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=EARLIER_H))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _names(names: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName(
        [x509.IPAddress(address) if (address := _address(name)) else x509.DNSName(name) for name in names]
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _text(key: ec.EllipticCurvePrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain).decode("ascii")


def _write(path: Path, text: str, mode: int) -> None:
    """The whole file or none, never readable by others before its mode is set."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".boxwright-")
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(text)
    Path(temporary).chmod(mode)
    Path(temporary).replace(path)
