"""Java's own key store format, JKS: keys hidden by a stream of SHA-1 digests, a digest over all.

It is no protection by today's measure, and Java itself warns of it; it is read because stores of it
are in use. What a file says of its own lengths is never believed beyond the end of the file.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

from penstock.errors import ConfigError

MAGIC = b"\xfe\xed\xfe\xed"
_DIGEST_BYTES = 20
_KEY_ENTRY, _TRUSTED_ENTRY = 1, 2
_VERSION_WITH_TYPES = 2  # Version 1 names no type with each certificate.
_SPICE = b"Mighty Aphrodite"  # The format's own: it stands between password and content.
_KEY_PROTECTION = bytes.fromhex("060a2b060104012a02110101")  # The object id of the key stream.
_SEQUENCE, _OCTET_STRING = 0x30, 0x04


class KeyStoreUnreadable(ConfigError):
    """The store is damaged, of another kind, or the password is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JksKey:
    """A private key, still hidden, with its certificates; the own one first."""

    alias: str
    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...]  # DER.


@dataclass(frozen=True, slots=True, kw_only=True)
class JksStore:
    """What a file holds."""

    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]  # DER.


def read_jks(data: bytes, password: str | None) -> JksStore:
    """Read a store; None: without the check that needs its password, as Java does."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + 8 + _DIGEST_BYTES:
        raise KeyStoreUnreadable("it is no JKS key store")
    if password is not None:
        _check_integrity(data, password)
    reader = _Reader(data[:-_DIGEST_BYTES], len(MAGIC))
    version, count = reader.number(), reader.number()
    if version not in (1, _VERSION_WITH_TYPES):
        raise KeyStoreUnreadable(f"JKS of version {version} is not known")
    keys: list[JksKey] = []
    trusted: list[bytes] = []
    for _ in range(count):
        tag, alias = reader.number(), reader.text()
        reader.take(8)  # When it was put in.
        if tag == _KEY_ENTRY:
            protected = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.number()))
            keys.append(JksKey(alias=alias, protected=protected, chain=chain))
        elif tag == _TRUSTED_ENTRY:
            trusted.append(reader.certificate(version))
        else:
            raise KeyStoreUnreadable(f"an entry of kind {tag} is not known")
    return JksStore(keys=tuple(keys), trusted=tuple(trusted))


def reveal_key(key: JksKey, password: str) -> bytes:
    """The key in PKCS#8; KeyStoreUnreadable when the password is not the key's."""
    hidden = _hidden_part(key.protected)
    if len(hidden) < 2 * _DIGEST_BYTES:
        raise KeyStoreUnreadable("a key of the store is cut short")
    secret = password.encode("utf-16-be")
    digest = hidden[:_DIGEST_BYTES]
    body, check = hidden[_DIGEST_BYTES:-_DIGEST_BYTES], hidden[-_DIGEST_BYTES:]
    stream = bytearray()
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    plain = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):
        raise KeyStoreUnreadable("the password of the key is wrong")
    return plain


def _check_integrity(data: bytes, password: str) -> None:
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    expected = hashlib.sha1(password.encode("utf-16-be") + _SPICE + content).digest()
    if not hmac.compare_digest(expected, digest):
        raise KeyStoreUnreadable("the password is wrong, or the store is damaged")


def _hidden_part(protected: bytes) -> bytes:
    """EncryptedPrivateKeyInfo: a sequence of an algorithm and a string of octets."""
    outer, rest = _der(protected, _SEQUENCE)
    algorithm, after = _der(outer, _SEQUENCE)
    octets, tail = _der(after, _OCTET_STRING)
    if rest or tail or not algorithm.startswith(_KEY_PROTECTION):
        raise KeyStoreUnreadable("a key of the store is protected in a way that is not known")
    return octets


def _der(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first element, which must have the tag, and what follows it."""
    if len(data) < 2 or data[0] != tag:
        raise KeyStoreUnreadable("a key of the store cannot be read")
    size, at = data[1], 2
    if size & 0x80:
        at += size & 0x7F
        if not 2 < at <= 6:
            raise KeyStoreUnreadable("a key of the store cannot be read")
        size = int.from_bytes(data[2:at], "big")
    if at + size > len(data):
        raise KeyStoreUnreadable("a key of the store is cut short")
    return data[at : at + size], data[at + size :]


class _Reader:
    """Java's DataInput, over bytes that end somewhere."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise KeyStoreUnreadable("the store is cut short")
        piece, self._at = self._data[self._at : end], end
        return piece

    def number(self) -> int:
        (value,) = struct.unpack(">i", self.take(4))
        return int(value)

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take(2))
        return self.take(size).decode(errors="replace")

    def block(self) -> bytes:
        return self.take(self.number())

    def certificate(self, version: int) -> bytes:
        kind = self.text() if version >= _VERSION_WITH_TYPES else "X.509"
        if kind != "X.509":
            raise KeyStoreUnreadable(f"a certificate of type {kind} is not known")
        return self.block()
