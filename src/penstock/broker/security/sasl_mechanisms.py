"""The SASL mechanisms of a listener, made of its settings: who may come in by which proof.

A mechanism that was asked for and cannot be served stops the start. Credentials of SCRAM are
looked up in the image at every login; passwords of PLAIN are those of the settings of the moment.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.security.outgoing_login import kerberos_login, kerberos_rules
from penstock.broker.security.token_keys import bearer_tokens_of
from penstock.cluster.image.image import ClusterImage, ConfigKey
from penstock.cluster.znodes import sanitized
from penstock.config.broker import BrokerConfig
from penstock.config.listeners import SASL_PLAINTEXT
from penstock.errors import ConfigError
from penstock.security.kerberos_names import SETTING as RULES
from penstock.security.sasl.bearer import OAUTHBEARER, BearerServer
from penstock.security.sasl.client_exchange import NONCE_BYTES
from penstock.security.sasl.decoys import CredentialForm, forms_of
from penstock.security.sasl.kerberos_login import GSSAPI, SERVICE_SETTING
from penstock.security.sasl.outcome import SaslServer
from penstock.security.sasl.plain import PLAIN, PlainServer, PlainUsers
from penstock.security.sasl.scram import HASHES, ScramCredential
from penstock.security.sasl.scram_server import ScramServer, ScramUsers, TokenLogin
from penstock.security.sasl.token_keys import BearerTokens

if TYPE_CHECKING:
    from penstock.broker.security.delegation_tokens import DelegationTokens
    from penstock.security.sasl.gssapi_server import KerberosService

log = logging.getLogger("kafka.network.SocketServer")

SERVED: Final = (PLAIN, *HASHES, OAUTHBEARER, GSSAPI)
_JAAS: Final = "sasl.jaas.config"
_HANDLER: Final = "sasl.server.callback.handler.class"

MakeServer = Callable[[], SaslServer]
MakeFor = Callable[["KnownUsers"], SaslServer]
_LOOKED_AT_MAX: Final = 1_000  # Credentials, for the forms that they have.


class KnownUsers(NamedTuple):
    """Whom a cluster knows, apart from the settings of its listeners."""

    image: ClusterImage
    tokens: "DelegationTokens | None"
    decoy_key: bytes


class SaslMechanisms:
    """What one listener offers; obeys its settings anew when they change."""

    def __init__(
        self,
        config: BrokerConfig,
        listener: str,
        *,
        protocol: str,
        now_ms: Callable[[], int],
    ) -> None:
        self._listener = listener
        self._now_ms = now_ms
        self.bearer: BearerTokens | None = None  # None: the listener does not take any.
        self._made_of = self._settings(config)
        self._offered = self._make(config)  # By name, from the image of the moment.
        if protocol == SASL_PLAINTEXT and PLAIN in self._offered:
            log.warning(
                "The listener %s takes passwords (PLAIN) without encryption: use SASL_SSL", listener
            )

    def offered(self, known: KnownUsers) -> Mapping[str, MakeServer]:
        """What somebody who comes now may choose from."""
        return {name: partial(make, known) for name, make in self._offered.items()}

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take new users and mechanisms; those that cannot be used leave what was."""
        made_of = self._settings(config)
        if made_of == self._made_of:
            return
        self._made_of = made_of
        try:
            self._offered = self._make(config)
        except ConfigError as error:
            log.error("The listener %s keeps its mechanisms: %s", self._listener, error)

    def _settings(self, config: BrokerConfig) -> Mapping[str, object]:
        enabled = config.for_listener(self._listener, "sasl.enabled.mechanisms")
        assert isinstance(enabled, tuple)
        jaas = {name: config.for_mechanism(self._listener, name, _JAAS) for name in enabled}
        kerberos = [config.for_listener(self._listener, key) for key in (SERVICE_SETTING, RULES)]
        return {"enabled": enabled, **jaas, "kerberos": kerberos}

    def _make(self, config: BrokerConfig) -> dict[str, MakeFor]:
        enabled = config.for_listener(self._listener, "sasl.enabled.mechanisms")
        assert isinstance(enabled, tuple)
        if not enabled:
            raise ConfigError(f"the listener {self._listener} needs sasl.enabled.mechanisms")
        return {name.upper(): self._server_of(name.upper(), config) for name in enabled}

    def _server_of(self, mechanism: str, config: BrokerConfig) -> MakeFor:
        if mechanism not in SERVED:
            raise ConfigError(
                f"sasl.enabled.mechanisms has {mechanism} for the listener {self._listener}, "
                f"which is not served: write some of {', '.join(SERVED)}"
            )
        if mechanism == OAUTHBEARER:
            if self.bearer is None:
                self.bearer = bearer_tokens_of(config, self._listener, now_ms=self._now_ms)
            validate = self.bearer.validate
            return lambda _known: BearerServer(validate)
        handler = config.for_mechanism(self._listener, mechanism, _HANDLER)
        if handler:
            raise ConfigError(f"{_HANDLER}={handler}: Java classes cannot be loaded here")
        if mechanism == GSSAPI:
            service = self._kerberos_service(config)
            return lambda _known: service.server()
        if mechanism == PLAIN:
            users = self._plain_users(config)
            return lambda _known: PlainServer(users)
        return ScramLogins(mechanism, self._now_ms)

    def _kerberos_service(self, config: BrokerConfig) -> "KerberosService":
        from penstock.security.sasl.gssapi_server import KerberosService

        text = config.for_mechanism(self._listener, GSSAPI, _JAAS)
        if not text:
            lead = f"listener.name.{self._listener.lower()}"
            raise ConfigError(
                f"the listener {self._listener} takes GSSAPI but has no keys: write "
                f"{lead}.gssapi.{_JAAS} with useKeyTab=true, keyTab and principal, or other "
                "mechanisms in sasl.enabled.mechanisms"
            )
        login = kerberos_login(config, self._listener, str(text))
        return KerberosService(login, kerberos_rules(config, self._listener))

    def _plain_users(self, config: BrokerConfig) -> PlainUsers:
        text = config.for_mechanism(self._listener, PLAIN, _JAAS)
        if not text:
            lead = f"listener.name.{self._listener.lower()}"
            raise ConfigError(
                f"the listener {self._listener} takes PLAIN but has no users: write "
                f'{lead}.plain.{_JAAS} with user_NAME="password"'
            )
        return PlainUsers.from_jaas(str(text))


class ScramLogins:
    """Makes the server of one login by SCRAM."""

    __slots__ = ("_configs", "_forms", "_mechanism", "_now_ms")

    def __init__(self, mechanism: str, now_ms: Callable[[], int]) -> None:
        self._mechanism = mechanism
        self._now_ms = now_ms
        self._configs: Mapping[ConfigKey, Mapping[str, str]] | None = None  # None: not looked yet.
        self._forms: Sequence[CredentialForm] = ()  # Of the credentials in there.

    def __call__(self, known: KnownUsers) -> ScramServer:
        def token(token_id: str) -> TokenLogin | None:
            if known.tokens is None:
                return None
            return known.tokens.login(known.image, self._mechanism, token_id, now_ms=self._now_ms())

        users = ScramUsers(
            credential=partial(_credential, known.image, self._mechanism),
            token=token,
            decoy_key=known.decoy_key,
            forms=self._forms_in(known.image),
        )
        return ScramServer(self._mechanism, users, nonce=secrets.token_urlsafe(NONCE_BYTES))

    def _forms_in(self, image: ClusterImage) -> Sequence[CredentialForm]:
        """Looked for anew when the settings changed, of which credentials are some."""
        if image.configs is not self._configs:
            self._configs = image.configs
            self._forms = forms_of(islice(_credentials(image, self._mechanism), _LOOKED_AT_MAX))
        return self._forms


def _credentials(image: ClusterImage, mechanism: str) -> Iterator[ScramCredential]:
    """In an order that is the same at all brokers."""
    for name in sorted(name for kind, name in image.configs if kind == "users"):
        text = image.config("users", name).get(mechanism)
        if text is None:
            continue
        try:
            yield ScramCredential.from_text(text)
        except ConfigError:
            continue  # It lets nobody in, and a login with it says so.


def _credential(image: ClusterImage, mechanism: str, user: str) -> ScramCredential | None:
    text = image.config("users", sanitized(user)).get(mechanism)
    if text is None:
        return None
    try:
        return ScramCredential.from_text(text)
    except ConfigError as error:
        log.error("The %s credential of user %r cannot be used: %s", mechanism, user, error)
        return None
