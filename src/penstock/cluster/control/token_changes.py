"""Delegation tokens, written where Apache Kafka kept them, with a notice for its readers.

A token has a node of its own, and changes by compare-and-set. What somebody else writes there is
heard of by the same notices. Who may have, renew and end a token was decided before.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.image.image import ImageDelta
from penstock.cluster.image.load import read_nodes
from penstock.cluster.token_nodes import (
    TOKEN_CHANGE_PREFIX,
    encode_token,
    read_token,
    token_path,
)
from penstock.cluster.znodes import DELEGATION_TOKEN_CHANGES
from penstock.errors import DelegationTokenNotFound
from penstock.meta.store import Create, Delete, MetaError, MultiFailed, Op, Set
from penstock.security.delegation import TokenInformation

_NOTICES_KEPT = 100
_TRIES_MAX = 10

AlterToken = Callable[[TokenInformation], TokenInformation | None]  # None: it ends.


class TokenChanges:
    """The controller's hand in the delegation tokens."""

    def __init__(self, writes: FencedWrites, ledger: ImageLedger) -> None:
        self._writes = writes
        self._store = writes.store
        self._ledger = ledger
        self._heard: frozenset[str] = frozenset()  # Names of notices.

    async def create(self, token: TokenInformation) -> None:
        """Its id is random, so there is none under it."""
        await self._write(token.token_id, token)

    async def alter(self, token_id: str, alter: AlterToken) -> TokenInformation | None:
        """The token as it is now; None: it is gone. What `alter` raises leaves it as it was."""
        for _ in range(_TRIES_MAX):
            before = self._ledger.image.tokens.get(token_id)
            if before is None:
                raise DelegationTokenNotFound("there is no such delegation token")
            after = alter(before)
            if after == before:
                return after
            try:
                await self._write(token_id, after)
            except MultiFailed:
                await self.look_again([token_id])  # Somebody wrote without the controller.
                continue
            return after
        raise MetaError(f"{token_path(token_id)} is written by others all the time")

    async def remove(self, token_ids: Iterable[str]) -> None:
        """Those that are still there."""
        for token_id in token_ids:
            with suppress(DelegationTokenNotFound):
                await self.alter(token_id, lambda _: None)

    async def _write(self, token_id: str, token: TokenInformation | None) -> None:
        path, version = token_path(token_id), self._ledger.token_versions.get(token_id)
        write: Op
        if token is None:
            write = Delete(path, version if version is not None else 0)
        elif version is None:
            write = Create(path, encode_token(token))
        else:
            write = Set(path, encode_token(token), version)
        notice = Create(TOKEN_CHANGE_PREFIX, token_id.encode(), sequential=True)
        await self._writes.commit([write, notice])
        self._note(token_id, token)
        await self._drop_old_notices()

    def _note(self, token_id: str, token: TokenInformation | None) -> None:
        versions = self._ledger.token_versions
        if token is None:
            versions.pop(token_id, None)
        else:
            versions[token_id] = versions.get(token_id, -1) + 1
        self._ledger.publish(ImageDelta(tokens={token_id: token}))

    async def look_again(self, token_ids: Sequence[str]) -> None:
        """Read these tokens, and publish those that are not as known."""
        versions = self._ledger.token_versions
        found: dict[str, TokenInformation | None] = {}
        paths = [token_path(token_id) for token_id in token_ids]
        for token_id, path, node in zip(
            token_ids, paths, await read_nodes(self._store, paths), strict=True
        ):
            if (node[1].version if node else None) == versions.get(token_id):
                continue
            versions.pop(token_id, None)
            found[token_id] = None
            if node is not None:
                versions[token_id] = node[1].version
                found[token_id] = read_token(path, node[0])
        self._ledger.publish(ImageDelta(tokens=found))

    async def hear(self) -> None:
        """Act on notices that somebody has left."""
        names = await self._store.children(DELEGATION_TOKEN_CHANGES)
        paths = [f"{DELEGATION_TOKEN_CHANGES}/{name}" for name in names if name not in self._heard]
        told: dict[str, None] = {}
        for node in await read_nodes(self._store, paths):
            token_id = node[0].decode(errors="replace") if node is not None else ""
            if token_id and "/" not in token_id and token_id.isprintable():
                told[token_id] = None
        await self.look_again(list(told))
        self._heard = frozenset(names)

    async def _drop_old_notices(self) -> None:
        names = sorted(await self._store.children(DELEGATION_TOKEN_CHANGES))[:-_NOTICES_KEPT]
        if names:
            with suppress(MetaError):  # Another process removed them as well, which is fine.
                await self._writes.commit(
                    [Delete(f"{DELEGATION_TOKEN_CHANGES}/{name}") for name in names]
                )
