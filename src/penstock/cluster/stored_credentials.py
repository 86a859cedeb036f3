"""SCRAM credentials written straight into the metadata store, before any broker runs.

Brokers that log in to each other by SCRAM need a credential to start from, and nobody to ask for
one yet. The node is the one that AlterUserScramCredentials writes, beside the quotas of the user;
a notice tells brokers that do run.
"""

from collections.abc import Mapping

from penstock.cluster import znodes
from penstock.meta.store import Create, MetaError, MetaStore, MultiFailed, Op, Set

_TRIES_MAX = 10
_PARENTS = ("/config", "/config/users", znodes.CONFIG_CHANGES)


async def store_credentials(store: MetaStore, user: str, texts: Mapping[str, str | None]) -> None:
    """Set credentials by mechanism, None: none any more; what else the user has stays."""
    for _ in range(_TRIES_MAX):
        try:
            await store.multi(await _ops(store, user, texts))
        except MultiFailed:
            continue  # Somebody else wrote meanwhile.
        return
    raise MetaError(f"the settings of user {user} are written by others all the time")


async def _ops(store: MetaStore, user: str, texts: Mapping[str, str | None]) -> list[Op]:
    name = znodes.sanitized(user)
    path = znodes.config_path("users", name)
    *parents, node = await store.multi_get([*_PARENTS, path])
    before = znodes.decode_config(path, node[0]) if node is not None else {}
    after = {key: value for key, value in before.items() if key not in texts}
    after |= {key: text for key, text in texts.items() if text is not None}
    content = znodes.encode_config(after)
    return [
        *(Create(p) for p, found in zip(_PARENTS, parents, strict=True) if found is None),
        Create(path, content) if node is None else Set(path, content, node[1].version),
        Create(
            znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change("users", name), sequential=True
        ),
    ]
