"""A certificate authority for a developer's cluster: it signs a few keys, and that is all it does.

Keys are of the curve P-256, in PEM as Kafka and ZooKeeper take it. Files, names and how long it all
is valid are for whoever asks.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, GeneralName, KeyUsage

_SKEW = datetime.timedelta(hours=1)  # For machines whose clocks are behind.


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedKey:
    """A key and its certificate; `pem` has both, the certificate of who signed it at the end."""

    key_pem: bytes = field(repr=False)
    chain_pem: bytes

    @property
    def pem(self) -> bytes:
        return self.key_pem + self.chain_pem


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallAuthority:
    """Signs for as long as it is itself valid."""

    key: "EllipticCurvePrivateKey" = field(repr=False)
    certificate: "Certificate"

    @classmethod
    def create(cls, name: str, *, now: datetime.datetime, days: int) -> "SmallAuthority":
        """A new authority, valid from `now` on."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        key = _new_key()
        until = now + datetime.timedelta(days=days)
        identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _builder(name, name, key, now, until)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_uses(signs=True), critical=True)
            .add_extension(identity, critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key=key, certificate=certificate)

    @property
    def certificate_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding

        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self.key)

    def sign(self, name: str, *, hosts: Sequence[str], now: datetime.datetime) -> SignedKey:
        """A new key for a server at these hosts, which may come to others with it, too."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        key = _new_key()
        (own,) = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder(name, str(own.value), key, now, self.certificate.not_valid_after_utc)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_uses(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        chain = certificate.public_bytes(Encoding.PEM) + self.certificate_pem
        return SignedKey(key_pem=_key_pem(key), chain_pem=chain)


def _new_key() -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _builder(
    name: str,
    issuer: str,
    key: "EllipticCurvePrivateKey",
    now: datetime.datetime,
    until: datetime.datetime,
) -> "CertificateBuilder":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    return (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(until)
    )


def _uses(*, signs: bool) -> "KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> "GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
