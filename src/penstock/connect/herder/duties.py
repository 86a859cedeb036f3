"""What the leader of a group does for all: tasks written, zombies fenced, session keys made.

Only the leader writes configurations, so two workers never write tasks of one connector against
each other. Before tasks of a new round start anywhere, the producers of the round before are shut
out (KIP-618), wherever they run: a record in the config topic says that this was done.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from penstock.client.admin import Admin
from penstock.connect.group.peers import PeerFailed, WorkerPeers
from penstock.connect.group.place import GroupPlace
from penstock.connect.group.session_keys import SessionKey
from penstock.connect.herder.refusals import connector_not_found
from penstock.connect.herder.stores import ConnectStores
from penstock.connect.settings import WorkerSettings
from penstock.connect.store.config_records import encode_fencing, encode_tasks
from penstock.connect.store.config_state import StoredConnector
from penstock.connect.store.status_records import TaskId


class GroupDuties:
    """Done here if this worker leads, asked of the leader otherwise."""

    def __init__(
        self,
        settings: WorkerSettings,
        stores: ConnectStores,
        peers: WorkerPeers,
        place: Callable[[], GroupPlace],
    ) -> None:
        self._settings = settings
        self._stores = stores
        self._peers = peers
        self._place = place
        self._lock = threading.Lock()

    def put_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Put a connector's tasks in force; PeerFailed if the leader could not be asked."""
        if not self._place().is_leader:
            self._ask_leader("POST", f"/connectors/{quote(name, safe='')}/tasks", configs)
            return
        with self._lock:
            stored = self._stored(name)
            if _are_same(stored, configs):
                return
            self._stores.write_config(encode_tasks(name, configs))
        for number in range(len(configs), len(stored.tasks)):
            if self._stores.status(TaskId(name, number)) is not None:
                self._stores.set_status(TaskId(name, number), None)

    def fence(self, name: str) -> None:
        """Shut out what ran before a connector's tasks; PeerFailed if the leader was not asked."""
        if not self._place().is_leader:
            self._ask_leader("PUT", f"/connectors/{quote(name, safe='')}/fence", None)
            return
        with self._lock:
            stored = self._stored(name)
            if not stored.is_fencing_due:
                return
            if stored.fenced_count:
                prefix = f"{self._settings.group_id}-{name}"
                with Admin(self._settings.client) as admin:
                    admin.fence_producers([f"{prefix}-{n}" for n in range(stored.fenced_count)])
            self._stores.write_config([encode_fencing(name, len(stored.tasks))])

    def renew_key(self) -> None:
        """Make a session key if there is none, or an old one; the leader's alone."""
        signing, now_ms = self._settings.signing, time.time_ns() // 1_000_000
        known = self._stores.session_key
        if known is not None and not known.is_old(
            now_ms, signing.key_ttl_ms, signing.key_algorithm
        ):
            return
        made = SessionKey.made(signing.key_algorithm, now_ms)
        self._stores.write_config([made.record()])

    def _ask_leader(self, method: str, path: str, document: object) -> None:
        url = self._place().leader_url
        if url is None:
            raise PeerFailed("No worker is known to lead the group.")
        self._peers.ask(url, method, path, document, self._stores.session_key)

    def _stored(self, name: str) -> StoredConnector:
        stored = self._stores.connectors.get(name)
        if stored is None:
            raise connector_not_found(name)
        return stored


def _are_same(stored: StoredConnector, configs: Sequence[Mapping[str, str]]) -> bool:
    """Whether the tasks in force are these; a connector without tasks is not told so again."""
    return stored.is_consistent and list(stored.tasks) == list(configs)
