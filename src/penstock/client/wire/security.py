"""How to come to a secured broker, read from settings under Kafka's names or librdkafka's.

`Security.from_settings` takes what belongs to it out of any configuration. The handshake is in
`tls`, the proof of identity in `sasl`; `connection` calls both.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from penstock.client.settings import as_bool, as_list, without_effect
from penstock.client.wire.secrets import resolve_any
from penstock.errors import ConfigError
from penstock.security.sasl.client_tokens import MECHANISMS, Credentials, Proof
from penstock.security.sasl.jaas import JaasLogin, login_of
from penstock.security.sasl.kerberos_login import (
    GSSAPI,
    SERVICE_SETTING,
    KerberosLogin,
    kerberos_login_of,
)
from penstock.security.sasl.plain import PLAIN
from penstock.security.tls.client_contexts import ClientTls

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TLS_KEYS = frozenset(
    {
        "enable.ssl.certificate.verification",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
_SASL_KEYS = frozenset(
    {
        "sasl.jaas.config",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.password",
        "sasl.username",
    }
)
_ELSEWHERE = {
    "OAUTHBEARER": "it needs a token service",
}
_SERVICE = "kafka"  # librdkafka's default; Kafka has none.


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The two layers between a socket and Kafka's protocol; None: without that one."""

    tls: ClientTls | None = None
    credentials: Proof | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> Self:
        """Read the settings; ConfigError names the one that is missing or wrong."""
        given = resolve_any({key: value for key, value in settings.items() if value is not None})
        protocol = str(given.get("security.protocol", "PLAINTEXT")).upper()
        if protocol not in PROTOCOLS:
            raise ConfigError(f"security.protocol={protocol} is not one of {', '.join(PROTOCOLS)}")
        if protocol == "PLAINTEXT":
            return cls()  # Settings of a security that is switched off are nobody's business.
        credentials = _credentials(given) if protocol.startswith("SASL") else None
        _refuse_unknown(given)
        return cls(tls=_tls(given) if protocol.endswith("SSL") else None, credentials=credentials)


def _refuse_unknown(given: Mapping[str, object]) -> None:
    known = _TLS_KEYS | _SASL_KEYS
    for key in given:
        if not key.startswith(("ssl.", "sasl.")) or key in known or without_effect(key):
            continue
        near = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.8)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"{key!r} is not served by this client.{hint}")


def _credentials(given: Mapping[str, object]) -> Proof:
    mechanism = str(given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "").upper()
    choice = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or GSSAPI"
    if not mechanism:
        raise ConfigError(f"sasl.mechanism is missing: write {choice}")
    if mechanism not in MECHANISMS:
        reason = _ELSEWHERE.get(mechanism, "it is not known")
        raise ConfigError(
            f"sasl.mechanism={mechanism} is not served here ({reason}): write {choice}"
        )
    if mechanism == GSSAPI:
        return _kerberos(given)
    login = _login(given)
    if login.is_token and mechanism == PLAIN:
        raise ConfigError(
            "sasl.mechanism=PLAIN takes no delegation token (tokenauth): write SCRAM-SHA-256 or "
            "SCRAM-SHA-512"
        )
    return Credentials(
        mechanism=mechanism,
        username=login.username,
        password=login.password,
        is_token=login.is_token,
    )


def _kerberos(given: Mapping[str, object]) -> KerberosLogin:
    """From Kafka's line, or from librdkafka's names; without either, the tickets of `kinit`."""
    service = given.get(SERVICE_SETTING)
    if "sasl.jaas.config" in given:
        text = str(given["sasl.jaas.config"])
        return kerberos_login_of(text, service=str(service) if service else None)
    keytab, principal = given.get("sasl.kerberos.keytab"), given.get("sasl.kerberos.principal")
    if keytab and not principal:
        raise ConfigError("sasl.kerberos.keytab needs sasl.kerberos.principal")
    return KerberosLogin(
        service=str(service or _SERVICE),
        principal=str(principal) if principal else None,
        keytab=str(keytab) if keytab else None,
        uses_tickets=not keytab,
    )


def _login(given: Mapping[str, object]) -> JaasLogin:
    if "sasl.username" in given or "sasl.password" in given:
        for key in ("sasl.username", "sasl.password"):
            if key not in given:
                raise ConfigError(f"{key} is missing")
        username, password = str(given["sasl.username"]), str(given["sasl.password"])
        return JaasLogin(username=username, password=password, is_token=False)
    if "sasl.jaas.config" not in given:
        raise ConfigError("sasl.username and sasl.password are missing")
    return login_of(str(given["sasl.jaas.config"]))


def _tls(given: Mapping[str, object]) -> ClientTls:
    for key in ("ssl.truststore", "ssl.keystore"):
        refuse_java_store(key, given)

    def text(*keys: str) -> str | None:
        return next((str(given[key]) for key in keys if given.get(key)), None)

    ca = text("ssl.ca.location", "ssl.truststore.location")
    algorithm = str(given.get("ssl.endpoint.identification.algorithm", "https")).lower()
    if algorithm not in ("https", "none", ""):
        raise ConfigError(
            f"ssl.endpoint.identification.algorithm={algorithm} is not one of https and none"
        )
    verification = given.get("enable.ssl.certificate.verification", "true")
    return ClientTls(
        ca_location=None if ca == "probe" else ca,  # librdkafka's word for the system's.
        ca_pem=text("ssl.ca.pem", "ssl.truststore.certificates"),
        certificate_location=text("ssl.certificate.location", "ssl.keystore.location"),
        certificate_pem=text("ssl.certificate.pem", "ssl.keystore.certificate.chain"),
        key_location=text("ssl.key.location", "ssl.keystore.location"),
        key_pem=text("ssl.key.pem", "ssl.keystore.key"),
        key_password=text("ssl.key.password", "ssl.keystore.password"),
        crl_location=text("ssl.crl.location"),
        ciphers=text("ssl.cipher.suites"),
        protocols=tuple(str(one) for one in as_list(given.get("ssl.enabled.protocols", ""))),
        check_certificate=as_bool("enable.ssl.certificate.verification", verification),
        check_host=algorithm == "https",
    )


def refuse_java_store(key: str, given: Mapping[str, object]) -> None:
    """PEM alone is read; a Java key store would need a Java machine."""
    location = str(given.get(f"{key}.location") or "")
    kind = str(given.get(f"{key}.type") or "").upper()
    by_name = location.lower().endswith((".jks", ".p12", ".pfx", ".keystore", ".truststore"))
    if location and (kind not in ("", "PEM") or (by_name and kind != "PEM")):
        raise ConfigError(
            f"{key}.location={location} is a Java key store: convert it to PEM with "
            "`keytool -exportcert -rfc` or `openssl pkcs12` and give that file"
        )
