"""Keys, certificates and stores of a test's own, made with `cryptography`, without a process."""

import datetime
import hashlib
import struct
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

_JKS_KEY = bytes.fromhex("300e060a2b060104012a021101010500")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A key with its certificate, and who signed it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: "Identity | None" = None

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def certificate_der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def chain(self) -> list[x509.Certificate]:
        return [self.certificate] + (self.issuer.chain if self.issuer else [])

    @property
    def chain_pem(self) -> bytes:
        return b"".join(one.public_bytes(Encoding.PEM) for one in self.chain)

    def key_pem(self, password: str | None = None) -> bytes:
        lock: KeySerializationEncryption = NoEncryption()
        if password is not None:
            lock = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)

    def pkcs12(self, password: str) -> bytes:
        others = self.chain[1:]
        lock = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"me", self.key, self.certificate, others, lock
        )

    def jks(self, password: str, key_password: str | None = None) -> bytes:
        """As Java writes it: the reader of the product is not used."""
        plain = self.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        protected = _protected(plain, key_password or password)
        entry = struct.pack(">i", 1) + _text("me") + bytes(8) + _block(protected)
        entry += struct.pack(">i", len(self.chain))
        entry += b"".join(
            _text("X.509") + _block(one.public_bytes(Encoding.DER)) for one in self.chain
        )
        return signed_jks(b"\xfe\xed\xfe\xed" + struct.pack(">ii", 2, 1) + entry, password)


def make_identity(
    name: str, issuer: Identity | None = None, *, host: str = "127.0.0.1", days: float = 2
) -> Identity:
    """An authority when nobody is given as issuer, else a server or client for `host`.

    With `days` below zero it has expired.
    """
    import ipaddress

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=9))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        names = [x509.IPAddress(ipaddress.ip_address(host))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signer = issuer.key if issuer else key
    return Identity(key=key, certificate=builder.sign(signer, hashes.SHA256()), issuer=issuer)


def signed_jks(content: bytes, password: str) -> bytes:
    secret = password.encode("utf-16-be") + b"Mighty Aphrodite"
    return content + hashlib.sha1(secret + content).digest()


def trusting_jks(password: str, *trusted: Identity) -> bytes:
    entries = b"".join(
        struct.pack(">i", 2)
        + _text(f"ca{number}")
        + bytes(8)
        + _text("X.509")
        + _block(one.certificate_der)
        for number, one in enumerate(trusted)
    )
    head = b"\xfe\xed\xfe\xed" + struct.pack(">ii", 2, len(trusted))
    return signed_jks(head + entries, password)


def _protected(plain: bytes, password: str) -> bytes:
    secret, salt = password.encode("utf-16-be"), bytes(range(20))
    stream, digest = b"", salt
    while len(stream) < len(plain):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    hidden = bytes(a ^ b for a, b in zip(plain, stream, strict=False))
    octets = salt + hidden + hashlib.sha1(secret + plain).digest()
    return _der(0x30, _JKS_KEY + _der(0x04, octets))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    return bytes([tag, 0x82]) + size.to_bytes(2, "big") + content


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _block(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def revocation_list(issuer: Identity, *revoked: Identity) -> bytes:
    """An authority's list, as PEM, of what it does not stand for any more."""
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.certificate.subject)
        .last_update(now - datetime.timedelta(days=1))
        .next_update(now + datetime.timedelta(days=1))
    )
    for one in revoked:
        serial = one.certificate.serial_number
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
        builder = builder.add_revoked_certificate(entry)
    signed = builder.sign(issuer.key, hashes.SHA256())
    return signed.public_bytes(Encoding.PEM)
