"""Key stores and trust stores by Kafka's settings: PEM, PKCS12 or JKS in, PEM in memory out.

A key leaves its store only into memory. `cryptography` reads PKCS12 and PEM, and is imported when
the first store is read: a broker without TLS does not load it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.security.tls.jks import MAGIC, KeyStoreUnreadable, read_jks, reveal_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

STORE_BYTES_MAX = 16 * 1024 * 1024
PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
TYPES = (JKS, PKCS12, PEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMaterial:
    """A key and the certificates that speak for it, the own one first."""

    key_pem: bytes = field(repr=False)
    chain_pem: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """One store of a listener; `ssl.keystore.*` or `ssl.truststore.*`."""

    name: str  # ssl.keystore or ssl.truststore, for the sentences of errors.
    type: str = JKS
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    key_text: str | None = field(default=None, repr=False)  # PEM, inline.
    certificates_text: str | None = field(default=None, repr=False)  # PEM, inline.

    @property
    def is_given(self) -> bool:
        return any((self.location, self.key_text, self.certificates_text))


def key_store_settings(settings: Mapping[str, object]) -> StoreSettings:
    """`ssl.keystore.*` and `ssl.key.password`; ConfigError for what does not go together."""
    store = StoreSettings(
        name="ssl.keystore",
        type=_type(settings, "ssl.keystore.type"),
        location=_text(settings, "ssl.keystore.location"),
        password=_text(settings, "ssl.keystore.password"),
        key_password=_text(settings, "ssl.key.password"),
        key_text=_text(settings, "ssl.keystore.key"),
        certificates_text=_text(settings, "ssl.keystore.certificate.chain"),
    )
    _check_form(store)
    if store.key_text is not None and store.certificates_text is None:
        raise ConfigError("ssl.keystore.key is given, but ssl.keystore.certificate.chain is not")
    if store.certificates_text is not None and store.key_text is None:
        raise ConfigError("ssl.keystore.certificate.chain is given, but ssl.keystore.key is not")
    if store.location and store.type != PEM and store.password is None:
        raise ConfigError("ssl.keystore.location is given, but ssl.keystore.password is not")
    return store


def trust_store_settings(settings: Mapping[str, object]) -> StoreSettings:
    """`ssl.truststore.*`; ConfigError for what does not go together."""
    store = StoreSettings(
        name="ssl.truststore",
        type=_type(settings, "ssl.truststore.type"),
        location=_text(settings, "ssl.truststore.location"),
        password=_text(settings, "ssl.truststore.password"),
        certificates_text=_text(settings, "ssl.truststore.certificates"),
    )
    _check_form(store)
    return store


def load_key(store: StoreSettings) -> KeyMaterial:
    """The key of a key store; ConfigError, naming the setting, when there is none to be had."""
    try:
        if store.key_text is not None:
            texts = (store.key_text.encode(), (store.certificates_text or "").encode())
            return _key_of_pem(*texts, store.key_password)
        data = _read(store)
        if store.type == PEM:
            return _key_of_pem(data, data, store.key_password)
        return _key_of_jks(data, store) if data.startswith(MAGIC) else _key_of_pkcs12(data, store)
    except (KeyStoreUnreadable, ValueError, TypeError) as error:
        raise _refusal(store, error) from None


def load_trusted(store: StoreSettings) -> bytes:
    """The certificates of a trust store, as PEM; ConfigError when there are none."""
    try:
        found = _trusted(store)
    except (KeyStoreUnreadable, ValueError, TypeError) as error:
        raise _refusal(store, error) from None
    if not found:
        raise ConfigError(f"{_where(store)} holds no certificate to trust")
    return b"".join(map(_certificate_pem, found))


def _trusted(store: StoreSettings) -> "list[Certificate]":
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import pkcs12

    if store.certificates_text is not None:
        return x509.load_pem_x509_certificates(store.certificates_text.encode())
    data = _read(store)
    if store.type == PEM:
        return x509.load_pem_x509_certificates(data)
    if data.startswith(MAGIC):
        return [
            x509.load_der_x509_certificate(one) for one in read_jks(data, store.password).trusted
        ]
    read = pkcs12.load_pkcs12(data, _bytes(store.password))
    return [one.certificate for one in read.additional_certs]


def _key_of_pem(key: bytes, chain: bytes, password: str | None) -> KeyMaterial:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    block = _private_key_block(key)
    is_locked = b"ENCRYPTED" in block
    if is_locked and password is None:
        raise KeyStoreUnreadable("the key is encrypted, but ssl.key.password is not given")
    found = load_pem_private_key(block, _bytes(password) if is_locked else None)
    return _material(found, x509.load_pem_x509_certificates(chain))


def _private_key_block(pem: bytes) -> bytes:
    """The key alone: key and certificates may stand in one file, in any order."""
    begin = pem.find(b"-----BEGIN ")
    while begin >= 0:
        label = pem[begin + 11 :].partition(b"-----")[0]
        end_mark = b"-----END " + label + b"-----"
        end = pem.find(end_mark, begin)
        if end < 0:
            break
        if label.endswith(b"PRIVATE KEY"):
            return pem[begin : end + len(end_mark)] + b"\n"
        begin = pem.find(b"-----BEGIN ", end)
    raise KeyStoreUnreadable("there is no private key in it")


def _key_of_jks(data: bytes, store: StoreSettings) -> KeyMaterial:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    read = read_jks(data, store.password)
    if not read.keys:
        raise KeyStoreUnreadable("there is no private key in it")
    first = read.keys[0]
    plain = reveal_key(first, store.key_password or store.password or "")
    chain = [x509.load_der_x509_certificate(one) for one in first.chain]
    return _material(load_der_private_key(plain, None), chain)


def _key_of_pkcs12(data: bytes, store: StoreSettings) -> KeyMaterial:
    from cryptography.hazmat.primitives.serialization import pkcs12

    if store.key_password not in (None, store.password):
        raise KeyStoreUnreadable(
            "a PKCS12 store has one password for all: ssl.key.password must be the same"
        )
    read = pkcs12.load_pkcs12(data, _bytes(store.password))
    if read.key is None or read.cert is None:
        raise KeyStoreUnreadable("there is no private key with a certificate in it")
    others = [one.certificate for one in read.additional_certs]
    return _material(read.key, [read.cert.certificate, *others])


def _material(key: "PrivateKeyTypes", chain: "list[Certificate]") -> KeyMaterial:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    def public(one: "PrivateKeyTypes | Certificate") -> bytes:
        return one.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    if not chain:
        raise KeyStoreUnreadable("there is no certificate for the key")
    if public(chain[0]) != public(key):
        raise KeyStoreUnreadable("the first certificate is not that of the key")
    return KeyMaterial(
        key_pem=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        chain_pem=b"".join(map(_certificate_pem, chain)),
    )


def _certificate_pem(certificate: "Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _read(store: StoreSettings) -> bytes:
    path = Path(store.location or "")
    try:
        with path.open("rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{_where(store)} cannot be read: {error.strerror}") from None
    if len(data) > STORE_BYTES_MAX:
        raise ConfigError(f"{_where(store)} is larger than {STORE_BYTES_MAX} bytes")
    return data


def _check_form(store: StoreSettings) -> None:
    has_text = store.key_text is not None or store.certificates_text is not None
    if has_text and store.type != PEM:
        raise ConfigError(f"{store.name}: certificates as text need {store.name}.type=PEM")
    if has_text and store.location:
        raise ConfigError(f"{store.name}.location and certificates as text exclude each other")
    if store.type == PEM and store.password is not None:
        raise ConfigError(f"{store.name}.password cannot be given with PEM")


def _refusal(store: StoreSettings, error: Exception) -> ConfigError:
    """The reason without what was in the store."""
    reason = str(error) if isinstance(error, KeyStoreUnreadable) else "its content or its password"
    word = "cannot be used: " if isinstance(error, KeyStoreUnreadable) else "cannot be used; check "
    return ConfigError(f"{_where(store)} {word}{reason}")


def _where(store: StoreSettings) -> str:
    return f"{store.name}.location={store.location}" if store.location else f"{store.name} (text)"


def _type(settings: Mapping[str, object], key: str) -> str:
    found = str(settings.get(key) or JKS).upper()
    if found not in TYPES:
        raise ConfigError(f"{key}={found} is not one of {', '.join(TYPES)}")
    return found


def _text(settings: Mapping[str, object], key: str) -> str | None:
    value = settings.get(key)
    return str(value) if value not in (None, "") else None


def _bytes(password: str | None) -> bytes | None:
    return None if password is None else password.encode()
