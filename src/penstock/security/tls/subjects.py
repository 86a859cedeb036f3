"""The name in a certificate as Java prints it, because Kafka's rules and ACLs are written so.

RFC 2253: the most specific part first, nine kinds of parts by keyword, all others by number with
their value in hexadecimal.
"""

from typing import TYPE_CHECKING

from penstock.security.certificate_names import CertificateNames
from penstock.security.principals import USER, Principal

if TYPE_CHECKING:
    from cryptography.x509 import Name, NameAttribute

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED = frozenset(',=+<>#;"\\')
_WIDE_ENCODINGS = {"BMPString": "utf-16-be", "UniversalString": "utf-32-be"}


def principal_of(certificate_der: bytes, names: CertificateNames) -> Principal:
    """Whom a client's certificate stands for; NoRuleApplies when for nobody."""
    return Principal(USER, names.user(subject_of(certificate_der)))


def subject_of(certificate_der: bytes) -> str:
    from cryptography import x509

    return distinguished_name(x509.load_der_x509_certificate(certificate_der).subject)


def distinguished_name(name: "Name") -> str:
    parts = ["+".join(map(_attribute, part)) for part in reversed(name.rdns)]
    return ",".join(parts)


def _attribute(attribute: "NameAttribute[str | bytes]") -> str:
    oid = attribute.oid.dotted_string
    keyword = _KEYWORDS.get(oid)
    if keyword is None:
        return f"{oid}=#{_der(attribute).hex()}"
    value = attribute.value
    assert isinstance(value, str)  # Bytes are the one kind of unique identifiers.
    return f"{keyword}={_escape(value)}"


def _escape(value: str) -> str:
    escaped = "".join(f"\\{one}" if one in _ESCAPED else one for one in value)
    if value[:1] == " ":
        escaped = f"\\{escaped}"
    if value[-1:] == " " and len(value) > 1:
        escaped = f"{escaped[:-1]}\\ "
    return escaped


def _der(attribute: "NameAttribute[str | bytes]") -> bytes:
    """The value as it stands in the certificate: tag, length, content."""
    kind = attribute._type
    value = attribute.value
    encoding = _WIDE_ENCODINGS.get(kind.name, "utf-8")
    content = value if isinstance(value, bytes) else value.encode(encoding)
    size = len(content)
    length = bytes([size]) if size < 0x80 else bytes([0x82]) + size.to_bytes(2, "big")
    if 0x80 <= size < 0x100:
        length = bytes([0x81, size])
    return bytes([int(kind.value)]) + length + content
