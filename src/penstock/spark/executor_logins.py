"""How executors come to the brokers where no password is to leave the driver.

With the option `delegationToken` the driver asks the brokers for a delegation token of its own
user (KIP-48) and hands that on with each batch of work, in place of its name and password. A token
that has half of its life before it is used again, also by the next process of the same user; it
ends by itself, and whoever has it cannot ask for another.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from penstock.client.operations.delegation_tokens import (
    DelegationToken,
    create_delegation_token,
    describe_delegation_tokens,
)
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.security import Security
from penstock.errors import DelegationTokenDisabled, UnsupportedByAuthentication
from penstock.security.principals import USER, Principal
from penstock.security.sasl.client_tokens import Credentials
from penstock.security.sasl.kerberos_login import KerberosLogin
from penstock.security.sasl.scram import HASHES
from penstock.spark.options import OptionError

_SECRET_PREFIX: Final = "sasl."
_MECHANISM: Final = "SCRAM-SHA-512"  # Where the driver's own is none that takes tokens.


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client that does not know who it is."""
    return {name: value for name, value in settings.items() if not name.startswith(_SECRET_PREFIX)}


class ExecutorLogins:
    """The driver's side: a token for the executors, another one in time."""

    def __init__(
        self, settings: Mapping[str, str], *, now_ms: Callable[[], int] | None = None
    ) -> None:
        self._settings = settings
        self._now_ms = now_ms or _wall_clock_ms
        self._token: DelegationToken | None = None
        credentials = Security.from_settings(settings).credentials
        if credentials is None:
            raise OptionError(
                "Option 'delegationToken' needs a driver that logs in: set "
                "'kafka.security.protocol' to SASL_SSL or SASL_PLAINTEXT, with a user"
            )
        is_kerberos = isinstance(credentials, KerberosLogin)
        # None: only the brokers know which user their rules make of a principal of Kerberos.
        self._owner = None if is_kerberos else Principal(USER, credentials.username)
        own = credentials.mechanism
        self._mechanism = own if own in HASHES else _MECHANISM
        self._is_token = isinstance(credentials, Credentials) and credentials.is_token

    def current(self) -> dict[str, str]:
        """What the executors' settings must have in place of the driver's own."""
        if self._is_token:  # The driver came by one itself; it is all there is to hand on.
            return {
                name: value
                for name, value in self._settings.items()
                if name.startswith(_SECRET_PREFIX)
            }
        if self._token is None or not self._is_fresh(self._token):
            self._token = self._obtain()
        return {
            "sasl.mechanism": self._mechanism,
            "sasl.jaas.config": self._token.jaas_config,
        }

    def _obtain(self) -> DelegationToken:
        try:
            with cluster_for(self._settings) as cluster:
                return self._known(cluster) or create_delegation_token(cluster)
        except DelegationTokenDisabled:
            raise OptionError(
                "Option 'delegationToken': the brokers give out none; they need "
                "delegation.token.secret.key"
            ) from None
        except UnsupportedByAuthentication:
            raise OptionError(
                "Option 'delegationToken': the brokers give no token to who comes in this way"
            ) from None

    def _known(self, cluster: ClusterClient) -> DelegationToken | None:
        """The freshest of those that are there; None: there is none to be used."""
        if self._owner is None:
            return None
        known = describe_delegation_tokens(cluster, [self._owner])
        fresh = [token for token in known if self._is_own(token) and self._is_fresh(token)]
        return max(fresh, key=lambda token: token.information.expires_ms, default=None)

    def _is_own(self, token: DelegationToken) -> bool:
        return token.information.owner == self._owner == token.information.requester

    def _is_fresh(self, token: DelegationToken) -> bool:
        """Whether as much of its life is ahead as behind."""
        found, now_ms = token.information, self._now_ms()
        return found.expires_ms - now_ms > now_ms - found.issued_ms


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000
