"""`kafka-configs --zookeeper`: credentials that go to ZooKeeper itself, as before a first start."""

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from penstock.client.operations.scram_credentials import NewScramCredential
from penstock.cluster.stored_credentials import store_credentials
from penstock.errors import CommandError
from penstock.meta.store import MetaError, StoreUnavailable
from penstock.security.sasl.scram import ScramCredential, check_iterations

_SALT_BYTES: Final = 32
_CONNECT_MS: Final = 5_000


def credential_text(credential: NewScramCredential) -> str:
    """What is stored of a password; UnacceptableCredential for too few or too many iterations."""
    check_iterations(credential.mechanism, credential.iterations)
    return ScramCredential.from_password(
        credential.mechanism,
        credential.password,
        salt=secrets.token_bytes(_SALT_BYTES),
        iterations=credential.iterations,
    ).text()


def alter_in_zookeeper(
    address: str, user: str, set_to: Sequence[NewScramCredential], delete: Collection[str]
) -> bool:
    """Whether a ZooKeeper answered there and took it; if not, a broker may be meant."""
    texts: dict[str, str | None] = dict.fromkeys(delete)
    texts |= {one.mechanism: credential_text(one) for one in set_to}
    return asyncio.run(_alter(address, user, texts))


async def _alter(address: str, user: str, texts: Mapping[str, str | None]) -> bool:
    from penstock.meta.zookeeper.store import ZkStore

    try:
        store = await ZkStore.open(address, connection_timeout_ms=_CONNECT_MS)
    except StoreUnavailable:
        return False
    try:
        await store_credentials(store, user, texts)
    except MetaError as error:
        raise CommandError(f"ZooKeeper at {address} did not take the credential: {error}") from None
    finally:
        await store.close()
    return True
