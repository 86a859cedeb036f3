"""Key stores of every kind end in a context that shakes hands; bad ones end in a sentence."""

import shutil
import ssl
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.java import compiled, run_java
from tests.support.key_stores import Identity, make_identity, signed_jks, trusting_jks

from penstock.errors import ConfigError
from penstock.security.certificate_names import CertificateNames
from penstock.security.tls.cipher_names import OPENSSL_NAMES, SUITES_OF_TLS_1_3
from penstock.security.tls.contexts import TlsSettings
from penstock.security.tls.jks import KeyStoreUnreadable, read_jks, reveal_key
from penstock.security.tls.stores import key_store_settings, load_key, load_trusted
from penstock.security.tls.subjects import distinguished_name, principal_of, subject_of

SUBJECTS = Path(__file__).with_name("Subjects.java")
CA = make_identity("ca")
SERVER = make_identity("server", CA)
CLIENT = make_identity("client", CA)
STRANGER = make_identity("stranger", make_identity("another ca"))
STORE, KEY = "store-pass", "key-pass"
Writer = Callable[[Path, Identity], dict[str, object]]


def pem_file(directory: Path, who: Identity) -> dict[str, object]:
    path = directory / "store.pem"
    path.write_bytes(who.chain_pem + who.key_pem(KEY))
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
        "ssl.key.password": KEY,
    }


def pem_text(directory: Path, who: Identity) -> dict[str, object]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": who.key_pem().decode(),
        "ssl.keystore.certificate.chain": who.chain_pem.decode(),
    }


def pkcs12_file(directory: Path, who: Identity) -> dict[str, object]:
    path = directory / "store.p12"
    path.write_bytes(who.pkcs12(STORE))
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": STORE,
    }


def pkcs12_called_jks(directory: Path, who: Identity) -> dict[str, object]:
    return pkcs12_file(directory, who) | {"ssl.keystore.type": "JKS"}


def jks_file(directory: Path, who: Identity) -> dict[str, object]:
    path = directory / "store.jks"
    path.write_bytes(who.jks(STORE, KEY))
    return {
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": STORE,
        "ssl.key.password": KEY,
    }


WRITERS = [pem_file, pem_text, pkcs12_file, pkcs12_called_jks, jks_file]
TRUST: dict[str, object] = {
    "ssl.truststore.type": "PEM",
    "ssl.truststore.certificates": CA.certificate_pem.decode(),
}


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Both sides in memory; the server's side when both are done."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    waiting = [asking, serving]
    for _ in range(20):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return serving
    raise AssertionError("the handshake came to no end")


def contexts(
    server: dict[str, object], client: dict[str, object] | None = None
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return (
        TlsSettings.read(TRUST | server).server_context(),
        TlsSettings.read(TRUST | (client or {})).client_context(),
    )


@pytest.mark.parametrize("write", WRITERS)
def test_a_store_of_every_kind_serves(write: Writer, tmp_path: Path) -> None:
    done = shake_hands(*contexts(write(tmp_path, SERVER)))
    assert done.version() == "TLSv1.3"


@pytest.mark.parametrize("write", WRITERS)
def test_a_client_shows_its_certificate(write: Writer, tmp_path: Path) -> None:
    server = pem_text(tmp_path, SERVER) | {"ssl.client.auth": "required"}
    done = shake_hands(*contexts(server, write(tmp_path, CLIENT)))
    shown = done.getpeercert(binary_form=True)
    assert shown is not None
    assert str(principal_of(shown, CertificateNames.parse("DEFAULT"))) == "User:CN=client"


@pytest.mark.parametrize("client", [{}, pem_text(Path(), STRANGER)])
def test_a_required_certificate_must_be_there_and_be_trusted(client: dict[str, object]) -> None:
    server = pem_text(Path(), SERVER) | {
        "ssl.client.auth": "required",
        "ssl.enabled.protocols": "TLSv1.2",  # In 1.3 the client is done before it is refused.
    }
    with pytest.raises(ssl.SSLError):
        shake_hands(*contexts(server, client))


def test_a_requested_certificate_may_be_missing() -> None:
    server = pem_text(Path(), SERVER) | {"ssl.client.auth": "requested"}
    assert shake_hands(*contexts(server)).getpeercert(binary_form=True) is None


def test_the_name_of_the_server_is_checked_unless_switched_off() -> None:
    elsewhere = pem_text(Path(), make_identity("server", CA, host="10.9.9.9"))
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shake_hands(*contexts(elsewhere))
    shake_hands(*contexts(elsewhere, {"ssl.endpoint.identification.algorithm": ""}))
    with pytest.raises(ssl.SSLCertVerificationError):  # The chain is checked all the same.
        shake_hands(
            *contexts(pem_text(Path(), STRANGER), {"ssl.endpoint.identification.algorithm": ""})
        )


def test_protocols_and_ciphers_are_those_of_the_settings() -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    server = pem_text(Path(), SERVER) | {"ssl.cipher.suites": suite}
    done = shake_hands(*contexts(server))
    assert done.version() == "TLSv1.2"
    cipher = done.cipher()
    assert cipher is not None and cipher[0] == OPENSSL_NAMES[suite]
    newest = {"ssl.cipher.suites": sorted(SUITES_OF_TLS_1_3)}
    assert shake_hands(*contexts(pem_text(Path(), SERVER) | newest)).version() == "TLSv1.3"


def test_every_name_of_the_table_is_one_openssl_knows() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    known = {str(one["name"]) for one in context.get_ciphers()}
    unknown = {name for name in OPENSSL_NAMES.values() if name not in known}
    # TLS 1.2 has no such suites; Java names neither.
    assert {one for one in unknown if "SHA384" not in one and "CHACHA20" not in one} <= {
        f"{exchange}AES256-SHA256" for exchange in ("ECDHE-ECDSA-", "ECDHE-RSA-")
    }


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ssl.keystore.type": "BKS"}, "not one of JKS, PKCS12, PEM"),
        ({"ssl.keystore.location": "/x"}, "ssl.keystore.password is not"),
        ({"ssl.keystore.key": "k"}, "type=PEM"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "k"}, "certificate.chain is not"),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "c"},
            "ssl.keystore.key is not",
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/x", "ssl.keystore.key": "k"},
            "exclude",
        ),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.password": "hush"}, "with PEM"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth=maybe"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.1"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "neither"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    settings: dict[str, object], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        TlsSettings.read(settings)


@pytest.mark.parametrize(
    "change",
    [
        {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"},
        {"ssl.cipher.suites": "TLS_NO_SUCH_WITH_THING"},
        {"ssl.cipher.suites": "NOSUCH"},
        {"ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"},
    ],
)
def test_ciphers_that_cannot_be_served_stop_the_start(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.cipher\.suites"):
        TlsSettings.read(pem_text(Path(), SERVER) | change).server_context()


def test_a_listener_without_a_key_is_told_so() -> None:
    with pytest.raises(ConfigError, match=r"needs ssl\.keystore"):
        TlsSettings.read({}).server_context()


@pytest.mark.parametrize("write", [pem_file, pkcs12_file, jks_file])
@pytest.mark.parametrize("key", ["ssl.keystore.password", "ssl.key.password"])
def test_a_wrong_password_is_told_without_the_password(
    write: Writer, key: str, tmp_path: Path
) -> None:
    given = write(tmp_path, SERVER) | {key: "not-it-at-all"}
    with pytest.raises(ConfigError) as caught:
        TlsSettings.read(given).server_context()
    assert "ssl.key" in str(caught.value)
    assert not {STORE, KEY, "not-it-at-all"} & set(str(caught.value).split())


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xfe\xed\xfe\xed", b"-----BEGIN X-----"])
@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM"])
def test_other_files_are_no_stores(content: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.write_bytes(content)
    given: dict[str, object] = {"ssl.keystore.type": kind, "ssl.keystore.location": str(path)}
    if kind != "PEM":
        given["ssl.keystore.password"] = STORE
    with pytest.raises(ConfigError, match="cannot be used"):
        load_key(key_store_settings(given))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    given = {"ssl.keystore.location": str(tmp_path / "gone"), "ssl.keystore.password": "p"}
    with pytest.raises(ConfigError, match="gone cannot be read: No such file"):
        load_key(key_store_settings(given))


def test_a_key_with_the_certificate_of_another_is_refused() -> None:
    given = pem_text(Path(), SERVER) | {"ssl.keystore.certificate.chain": CLIENT.chain_pem.decode()}
    with pytest.raises(ConfigError, match="not that of the key"):
        load_key(key_store_settings(given))


def test_no_secret_is_printed(tmp_path: Path) -> None:
    settings = TlsSettings.read(jks_file(tmp_path, SERVER))
    shown = repr(settings) + repr(load_key(settings.key_store))
    assert STORE not in shown and KEY not in shown and "PRIVATE" not in shown


def trusted(kind: str, path: Path, password: str | None) -> bytes:
    given = {"ssl.truststore.type": kind, "ssl.truststore.location": str(path)}
    if password is not None:
        given["ssl.truststore.password"] = password
    return load_trusted(TlsSettings.read(given).trust_store)


@pytest.mark.parametrize("password", [STORE, None])
def test_a_jks_trust_store_may_be_read_without_its_password(
    password: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "trust.jks"
    path.write_bytes(trusting_jks(STORE, CA, STRANGER))
    assert trusted("JKS", path, password) == CA.certificate_pem + STRANGER.certificate_pem


def test_a_trust_store_without_certificates_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trust.jks"
    path.write_bytes(trusting_jks(STORE))
    with pytest.raises(ConfigError, match="no certificate to trust"):
        trusted("JKS", path, STORE)


@given(st.data())
def test_a_jks_cut_or_changed_anywhere_is_refused(data: st.DataObject) -> None:
    whole = SERVER.jks(STORE)
    at = data.draw(st.integers(0, len(whole) - 1))
    cut = whole[:at]
    changed = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    for damaged in (cut, changed):
        with pytest.raises(KeyStoreUnreadable):
            read_jks(damaged, STORE)
        try:
            read_jks(damaged, None)  # Unchecked, it may pass, but never break.
        except KeyStoreUnreadable:
            continue


@given(st.binary(max_size=80))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_entries_of_any_bytes_are_read_or_refused(entries: bytes) -> None:
    head = b"\xfe\xed\xfe\xed" + struct.pack(">ii", 2, 1)
    try:
        read = read_jks(signed_jks(head + entries, "p"), "p")
        for key in read.keys:
            reveal_key(key, "p")
    except KeyStoreUnreadable:
        return


needs_keytool = pytest.mark.skipif(not shutil.which("keytool"), reason="there is no keytool here")


def keytool(*words: str) -> None:
    done = subprocess.run(["keytool", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_keytool
@pytest.mark.parametrize(("kind", "algorithm"), [("JKS", "RSA"), ("PKCS12", "EC")])
def test_stores_of_keytool_are_read(kind: str, algorithm: str, tmp_path: Path) -> None:
    path, out, trust = (tmp_path / name for name in ("k", "c.pem", "t"))
    key_pass = KEY if kind == "JKS" else STORE
    shared = ["-storetype", kind, "-storepass", STORE]
    keytool(
        *["-genkeypair", "-alias", "me", "-keyalg", algorithm, "-dname", "CN=kt,O=x"],
        *["-keystore", str(path), "-keypass", key_pass, *shared],
    )
    keytool(
        "-exportcert", "-rfc", "-alias", "me", "-keystore", str(path), "-file", str(out), *shared
    )
    keytool(
        "-importcert",
        "-noprompt",
        "-alias",
        "c",
        "-file",
        str(out),
        "-keystore",
        str(trust),
        *shared,
    )
    material = load_key(
        key_store_settings(
            {
                "ssl.keystore.type": kind,
                "ssl.keystore.location": str(path),
                "ssl.keystore.password": STORE,
                "ssl.key.password": key_pass,
            }
        )
    )
    certificate = x509.load_pem_x509_certificate(out.read_bytes())
    assert material.chain_pem == certificate.public_bytes(Encoding.PEM)
    assert load_pem_private_key(material.key_pem, None).public_key() == certificate.public_key()
    assert trusted(kind, trust, STORE) == material.chain_pem
    assert subject_of(certificate.public_bytes(Encoding.DER)) == "CN=kt,O=x"


NAMES = [
    x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"),
            x509.NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "B, E#1"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, '#a"b\\c+d<e>f;g=h '),
            x509.NameAttribute(NameOID.DOMAIN_COMPONENT, "dc"),
            x509.NameAttribute(NameOID.USER_ID, " u"),
            x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b"),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, "7" * 60),
            x509.NameAttribute(NameOID.COMMON_NAME, "Zoë"),
        ]
    ),
    x509.Name(
        [
            x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.LOCALITY_NAME, "l")]),
            x509.RelativeDistinguishedName(
                [
                    x509.NameAttribute(NameOID.COMMON_NAME, "a"),
                    x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "b"),
                ]
            ),
        ]
    ),
    x509.Name([x509.NameAttribute(NameOID.TITLE, "t" * 150)]),
    x509.Name([]),
]
PRINTED = [
    "CN=Zoë,2.5.4.5=#133c" + "37" * 60 + ",1.2.840.113549.1.9.1=#1603614062,UID=\\ u,DC=dc,"
    'O=\\#a\\"b\\\\c\\+d\\<e\\>f\\;g\\=h\\ ,ST=B\\, E\\#1,C=DE',
    "CN=a+OU=b,L=l",
    "2.5.4.12=#0c8196" + "74" * 150,
    "",
]


@pytest.mark.parametrize(("name", "printed"), list(zip(NAMES, PRINTED, strict=True)))
def test_names_are_printed_as_java_prints_them(name: x509.Name, printed: str) -> None:
    assert distinguished_name(name) == printed


@pytest.mark.skipif(not shutil.which("javac"), reason="there is no javac here")
def test_java_prints_them_so(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text("".join(f"{name.public_bytes().hex()}\n" for name in NAMES))
    class_path = compiled(SUBJECTS, tmp_path)
    said = run_java(class_path, "Subjects", str(path)).split("\n")[:-1]
    assert said == PRINTED
