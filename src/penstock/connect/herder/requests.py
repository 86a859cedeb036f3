"""What REST asks of a worker, with its checks; answers are documents, refusals are errors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.client.admin import Admin
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.connect.errors.kinds import ConnectError, UnknownPlugin
from penstock.connect.group.session_keys import check_signature
from penstock.connect.herder.answers import (
    connector_info,
    connector_status,
    task_infos,
    task_status,
)
from penstock.connect.herder.connectors import kind_of
from penstock.connect.herder.herder import Herder, meant_by
from penstock.connect.herder.refusals import (
    AskElsewhere,
    RequestRefused,
    connector_not_found,
    must_be_stopped,
    unknown_connector,
)
from penstock.connect.herder.validation import ConnectorChecks
from penstock.connect.settings import WorkerSettings
from penstock.connect.store.config_records import (
    RestartWanted,
    TargetState,
    encode_connector,
    encode_logger,
    encode_restart,
    encode_target_state,
    encode_tasks,
)
from penstock.connect.store.config_state import StoredConnector
from penstock.connect.store.offset_records import encode_offset
from penstock.connect.store.status_records import RunState, TaskId, TopicUsed
from penstock.errors import PenstockError

_SUCCESS = "The offsets for this connector have been {} successfully"
_OUTSIDE = (
    "The Connect framework-managed offsets for this connector have been {0} successfully. However,"
    " if this connector manages offsets externally, they will need to be manually {0} in the system"
    " that the connector uses."
)
_KEYS = "'kafka_topic' and 'kafka_partition'"
_TOPIC, _PARTITION, _OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"


class ConnectRequests:
    """The worker behind its REST interface; calls wait, so they are made in threads."""

    def __init__(self, herder: Herder, settings: WorkerSettings) -> None:
        self.herder = herder
        self.checks = ConnectorChecks(settings)
        self._settings = settings
        self._stores = herder.stores

    # Connectors --------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """All connectors."""
        return list(self._stores.connectors)

    def info(self, name: str) -> dict[str, Any]:
        """One connector."""
        stored = self._stored(name)
        return connector_info(stored, kind_of(stored.config))

    def config(self, name: str) -> dict[str, str]:
        """Its configuration."""
        return dict(self._stored(name).config)

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """The configurations of its tasks."""
        return task_infos(self._stored(name))

    def status(self, name: str) -> dict[str, Any]:
        """How it is."""
        statuses = self._stores.statuses(name)
        if TaskId(name) not in statuses:
            raise RequestRefused(404, f"No status found for connector {name}")
        stored = self._stores.connectors.get(name)
        kind = "unknown" if stored is None else kind_of(stored.config)
        tasks = [of for of in statuses if of.task is not None]
        return connector_status(name, kind, statuses, tasks)

    def task_status(self, of: TaskId) -> dict[str, Any]:
        """How a task is."""
        status = self._stores.status(of)
        if status is None:
            raise RequestRefused(404, f"No status found for task {of}")
        return task_status(of, status)

    def create(
        self, name: str, config: Mapping[str, str], initial: TargetState | None
    ) -> dict[str, Any]:
        """A new connector."""
        self.checks.ensure_valid(config)
        self._only_leader()
        if name in self._stores.connectors:
            raise RequestRefused(409, f"Connector {name} already exists")
        records = [] if initial is None else [encode_target_state(name, initial)]
        self._stores.write_config([*records, encode_connector(name, config)])
        return {**self.info(name), "tasks": []}

    def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, dict[str, Any]]:
        """Create a connector or change it; whether it is new, and the connector."""
        self.checks.ensure_valid(config)
        self._only_leader()
        is_new = name not in self._stores.connectors
        self._stores.write_config([encode_connector(name, config)])
        info = self.info(name)
        return is_new, {**info, "tasks": []} if is_new else info

    def patch_config(self, name: str, changes: Mapping[str, str | None]) -> dict[str, Any]:
        """Change some settings; null takes one away."""
        self._only_leader()
        merged: dict[str, str | None] = {**self._stored(name).config, **changes}
        config = {key: value for key, value in merged.items() if value is not None}
        return self.put_config(name, config)[1]

    def delete(self, name: str) -> None:
        """Its end; offsets stay."""
        self._only_leader()
        self._stored(name)
        records = [encode_connector(name, None), encode_target_state(name, None)]
        self._stores.write_config(records)

    def set_target(self, name: str, state: TargetState) -> None:
        """Start, pause or stop it."""
        if name not in self._stores.connectors:
            raise unknown_connector(name)
        record = encode_target_state(name, state)
        if state is not TargetState.STOPPED:
            self._stores.write_wishes([record])
            return
        self._only_leader()
        self._stores.write_config([*encode_tasks(name, []), record])

    def restart(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> dict[str, Any] | None:
        """Restart; None: the connector alone, whatever it is like."""
        if name not in self._stores.connectors:
            raise unknown_connector(name, colon=True)
        if not include_tasks and not only_failed:
            self._only_owner(TaskId(name))
            self.herder.restart(TaskId(name))
            return None
        self._only_leader()
        wish = RestartWanted(name=name, include_tasks=include_tasks, only_failed=only_failed)
        told = self._shown_restarting(name, meant_by(wish, self._stores.statuses(name)))
        record = encode_restart(name, include_tasks=include_tasks, only_failed=only_failed)
        self._stores.write_config([record])
        return told

    def _shown_restarting(self, name: str, meant: list[TaskId]) -> dict[str, Any]:
        """The status as it is about to be."""
        statuses = {
            of: replace(status, state=RunState.RESTARTING, trace=None) if of in meant else status
            for of, status in self._stores.statuses(name).items()
        }
        if TaskId(name) not in statuses:
            raise RequestRefused(404, f"Status for connector {name} not found")
        tasks = [of for of in statuses if of.task is not None]
        kind = kind_of(self._stored(name).config)
        return connector_status(name, kind, statuses, tasks)

    def restart_task(self, of: TaskId) -> None:
        """Restart one task."""
        stored = self._stores.connectors.get(of.connector)
        if stored is None:
            raise unknown_connector(of.connector, colon=True)
        if of.task is None or of.task >= len(stored.tasks):
            raise RequestRefused(404, f"Unknown task: {of}")
        self._only_owner(of)
        self.herder.restart(of)

    # What other workers ask --------------------------------------------------------------------

    def check_signature(self, headers: Mapping[str, str], body: bytes) -> None:
        """RequestRefused unless a worker of the group has signed it (KIP-507)."""
        allowed = self._settings.signing.allowed
        check_signature(self._stores.session_key, headers, body, allowed)

    def put_tasks(self, name: str, configs: list[dict[str, str]]) -> None:
        """The tasks that a connector asks for which runs at another worker."""
        self._only_leader()
        self.herder.duties.put_tasks(name, configs)

    def fence(self, name: str) -> None:
        """Shut out what ran before the tasks that are about to start."""
        self._only_leader()
        self.herder.duties.fence(name)

    def catch_up(self) -> None:
        """Know what another worker has written for a request."""
        self.herder.catch_up()

    def _only_leader(self) -> None:
        place = self.herder.place
        if not place.is_leader:
            raise AskElsewhere(place.leader_url)

    def _only_owner(self, of: TaskId) -> None:
        place = self.herder.place
        if not place.owns(of):
            raise AskElsewhere(place.owners.get(of) if place.is_leader else place.leader_url)

    # Topics ------------------------------------------------------------------------------------

    def topics(self, name: str) -> dict[str, Any]:
        """The topics that it uses."""
        if not self._settings.tracks_topics:
            raise RequestRefused(403, "Topic tracking is disabled.")
        return {name: {"topics": self._stores.topics(name)}}

    def reset_topics(self, name: str) -> None:
        """Forget them."""
        if not self._settings.tracks_topics:
            raise RequestRefused(403, "Topic tracking is disabled.")
        if not self._settings.resets_topics:
            raise RequestRefused(403, "Topic tracking reset is disabled.")
        for topic in self._stores.topics(name):
            self._stores.use_topic(TopicUsed(connector=name, topic=topic))

    # Offsets -----------------------------------------------------------------------------------

    def offsets(self, name: str) -> dict[str, Any]:
        """How far it is."""
        stored = self._stored(name)
        if kind_of(stored.config) == "source":
            own = stored.config.get("offsets.storage.topic")
            return {"offsets": self._stores.source_offsets(name, own)}
        with Admin(self._settings.client) as admin:
            found = admin.list_consumer_group_offsets(_group(stored))
        return {
            "offsets": [
                {
                    "partition": {_TOPIC: at.topic, _PARTITION: at.partition},
                    "offset": {_OFFSET: committed.offset},
                }
                for at, committed in sorted(found.items())
            ]
        }

    def alter_offsets(self, name: str, document: object) -> dict[str, str]:
        """Put it somewhere else."""
        changes = document.get("offsets") if isinstance(document, Mapping) else None
        if not changes or not isinstance(changes, list):
            raise RequestRefused(
                400, "Partitions / offsets need to be provided for an alter offsets request"
            )
        self._only_leader()
        stored = self._stopped(name)
        pairs = [_pair(one) for one in changes]
        if kind_of(stored.config) == "source":
            return self._alter_source(stored, pairs, "altered")
        return self._alter_sink(stored, dict(_sink_offset(*pair) for pair in pairs), "altered")

    def reset_offsets(self, name: str) -> dict[str, str]:
        """Have it begin anew."""
        self._only_leader()
        stored = self._stopped(name)
        known = self.offsets(name)["offsets"]
        if kind_of(stored.config) == "source":
            return self._alter_source(stored, [(one["partition"], None) for one in known], "reset")
        gone: dict[TopicPartition, int | None] = {
            TopicPartition(one["partition"][_TOPIC], one["partition"][_PARTITION]): None
            for one in known
        }
        return self._alter_sink(stored, gone, "reset")

    def _alter_source(
        self,
        stored: StoredConnector,
        pairs: list[tuple[dict[str, Any], dict[str, Any] | None]],
        word: str,
    ) -> dict[str, str]:
        config = self.checks.resolved(stored.config)
        named = {frozenset(partition.items()): offset for partition, offset in pairs}
        is_done = self.checks.connector(config).alter_offsets(config, named)
        records = [encode_offset(stored.name, partition, offset) for partition, offset in pairs]
        own = stored.config.get("offsets.storage.topic")
        self._stores.write_offsets(records)
        if own and self._settings.topics is not None:
            self._stores.write_offsets(records, own)
        return {"message": (_SUCCESS if is_done else _OUTSIDE).format(word)}

    def _alter_sink(
        self, stored: StoredConnector, offsets: dict[TopicPartition, int | None], word: str
    ) -> dict[str, str]:
        config = self.checks.resolved(stored.config)
        is_done = self.checks.connector(config).alter_offsets(config, offsets)
        kept = {at: OffsetAndMetadata(end) for at, end in offsets.items() if end is not None}
        gone = [at for at, end in offsets.items() if end is None]
        with Admin(self._settings.client) as admin:
            if kept:
                admin.alter_consumer_group_offsets(_group(stored), kept)
            if gone:
                admin.delete_consumer_group_offsets(_group(stored), gone)
        return {"message": (_SUCCESS if is_done else _OUTSIDE).format(word)}

    # Loggers -----------------------------------------------------------------------------------

    def set_group_level(self, logger: str, level: str) -> None:
        """How much a logger prints, in the whole group."""
        self._stores.write_wishes([encode_logger(logger, level)])

    def _stored(self, name: str) -> StoredConnector:
        stored = self._stores.connectors.get(name)
        if stored is None:
            raise connector_not_found(name)
        return stored

    def _stopped(self, name: str) -> StoredConnector:
        stored = self._stored(name)
        if stored.target is not TargetState.STOPPED or stored.tasks:
            raise must_be_stopped(name)
        return stored


def _group(stored: StoredConnector) -> str:
    return stored.config.get("consumer.override.group.id") or f"connect-{stored.name}"


def _pair(one: object) -> tuple[dict[str, Any], dict[str, Any] | None]:
    partition = one.get("partition") if isinstance(one, Mapping) else None
    offset = one.get("offset") if isinstance(one, Mapping) else None
    if not isinstance(partition, dict) or not isinstance(offset, dict | None):
        raise RequestRefused(400, "Each entry of offsets needs an object partition and an offset")
    return partition, offset


def _sink_offset(
    partition: Mapping[str, Any], offset: Mapping[str, Any] | None
) -> tuple[TopicPartition, int | None]:
    if _TOPIC not in partition or _PARTITION not in partition:
        raise RequestRefused(
            400, f"The partition for a sink connector offset must contain the keys {_KEYS}"
        )
    at = TopicPartition(str(partition[_TOPIC]), _number(partition[_PARTITION], _PARTITION))
    if offset is None:
        return at, None
    if _OFFSET not in offset:
        raise RequestRefused(
            400,
            f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'",
        )
    return at, _number(offset[_OFFSET], _OFFSET)


def _number(found: object, key: str) -> int:
    text = str(found)
    if isinstance(found, bool) or not text.isascii() or not text.isdigit() or len(text) > 18:
        raise RequestRefused(400, f"Failed to parse the value of '{key}': {found}")
    return int(text)


def as_refusal(error: Exception) -> RequestRefused | None:
    """The answer to what a request ran into; None: a defect."""
    if isinstance(error, RequestRefused):
        return error
    if isinstance(error, UnknownPlugin):
        return RequestRefused(400, str(error))
    if isinstance(error, ConnectError | PenstockError):
        return RequestRefused(500, str(error))
    return None
