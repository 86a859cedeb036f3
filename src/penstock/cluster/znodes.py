"""Where things stand in the metadata tree, and how they are written there.

Paths and JSON are those Apache Kafka used with ZooKeeper, so its shell shows what people know.
Private things are extra keys, which other readers skip, and the subtree `/ext`. This module turns
values into bytes and back; when to write them is the controller's business.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from penstock.cluster.image.image import ConfigKey, Endpoint, PartitionState
from penstock.errors import ConfigError
from penstock.protocol.primitives import uuid_from_text, uuid_text
from penstock.security.acls import nodes as acl_nodes

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = CONFIG_CHANGES + "/config_change_"
CONFIG_KINDS = ("topics", "brokers", "users", "clients", "ips", "groups")
# Names of these are kept sanitized, in the image too. Only then can nobody be called `<default>`,
# and a client of a user can be named `user/clients/client`.
SANITIZED_KINDS = ("users", "clients", "ips")
DEFAULT_ENTITY = "<default>"
_CLIENTS_OF_USER = "/clients"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
DELEGATION_TOKENS = "/delegation_token/tokens"
DELEGATION_TOKEN_CHANGES = "/delegation_token/token_changes"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FENCES = "/ext/fence"
TOPIC_IDS = "/ext/topic_ids"
DECOY_KEY = "/ext/decoy_key"

_PLAIN = re.compile("[a-zA-Z0-9_<>-][a-zA-Z0-9._<>-]*", re.ASCII)
_UNSAFE = re.compile(rb"[^a-zA-Z0-9._-]")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")

# Parents before children; present in every cluster from its first start.
PERSISTENT_PATHS = (
    "/cluster",
    "/consumers",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    "/brokers/seqid",
    "/config",
    *(f"/config/{kind}" for kind in CONFIG_KINDS),
    CONFIG_CHANGES,
    "/admin",
    DELETE_TOPICS,
    "/isr_change_notification",
    "/log_dir_event_notification",
    PRODUCER_ID_BLOCK,
    "/ext",
    FENCES,
    TOPIC_IDS,
    *acl_nodes.PERSISTENT_PATHS,
    "/delegation_token",
    DELEGATION_TOKENS,
    DELEGATION_TOKEN_CHANGES,
)


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def fence_path(broker_id: int) -> str:
    return f"{FENCES}/{broker_id}"


def topic_id_path(topic_id: bytes) -> str:
    """There as long as the topic is, and never again.

    Versions of a topic's nodes begin anew when it is deleted and made again. Whoever writes by
    such a version and may not know checks this as well.
    """
    return f"{TOPIC_IDS}/{uuid_text(topic_id)}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(kind: str, name: str) -> str:
    """Where the settings of an entity are; what a path cannot hold is escaped."""
    if kind in SANITIZED_KINDS or _PLAIN.fullmatch(name):
        return f"/config/{kind}/{name}"
    return f"/config/{kind}/{sanitized(name)}"


def config_name(kind: str, node_name: str) -> str:
    """The entity behind the last part of a config path."""
    return node_name if kind in SANITIZED_KINDS else desanitized(node_name)


def user_clients_path(user: str) -> str:
    """Below it are the clients of a user that have settings of their own."""
    return f"/config/users/{user}{_CLIENTS_OF_USER}"


def user_client_name(user: str, client: str) -> str:
    """The name, among users, of a client of a user; both are sanitized."""
    return f"{user}{_CLIENTS_OF_USER}/{client}"


def user_of(kind: str, name: str) -> str | None:
    """The user whose client this is; None: it is not a client of a user."""
    user, _, client = name.partition(f"{_CLIENTS_OF_USER}/")
    return user if kind == "users" and client else None


def sanitized(name: str) -> str:
    """A name of free text as Kafka writes it into paths: the form of URLs."""
    text = _UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], name.encode()).decode()
    return text.replace(".", "%2E") if text in (".", "..") else text  # No path may hold these.


def desanitized(text: str) -> str:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode()).decode(
        errors="replace"
    )


class NodeUnreadable(ConfigError):
    """A node holds something else than it should."""

    def __init__(self, path: str, reason: object) -> None:
        super().__init__(
            f"The metadata node {path} cannot be read ({reason}). The metadata store is damaged "
            "or belongs to something else; put a good copy of it back."
        )


_json_text = json.JSONEncoder(separators=(",", ":")).encode


def _encode(value: Mapping[str, object]) -> bytes:
    return _json_text(value).encode()


def _decode(path: str, data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise NodeUnreadable(path, error) from error


def encode_state(state: PartitionState) -> bytes:
    """The partition epoch is not in it: it is the node's version."""
    return _encode(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": state.isr,
            "leader_recovery_state": state.leader_recovery_state,
            "elr": state.elr,
            "lke": state.lke,
            "min_isr": state.min_isr,
        }
    )


def decode_state(path: str, data: bytes, version: int) -> PartitionState:
    value = _decode(path, data)
    try:
        return PartitionState(
            leader=value["leader"],
            leader_epoch=value["leader_epoch"],
            isr=tuple(value["isr"]),
            min_isr=value.get("min_isr", 1),
            elr=tuple(value.get("elr", ())),
            lke=tuple(value.get("lke", ())),
            leader_recovery_state=value.get("leader_recovery_state", 0),
            controller_epoch=value["controller_epoch"],
            partition_epoch=version,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise NodeUnreadable(path, error) from error


class TopicNode(NamedTuple):
    """The assignment of a topic."""

    topic_id: bytes
    partitions: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]]
    removing: Mapping[int, tuple[int, ...]]
    # Partition numbers [first, end) whose nodes are being made or removed in several steps; they
    # do not count until they are in `partitions`. None: nothing is under way.
    unsettled: tuple[int, int] | None = None

    def encode(self) -> bytes:
        value: dict[str, object] = {
            "removing_replicas": self.removing,
            "partitions": self.partitions,
            "topic_id": uuid_text(self.topic_id),
            "adding_replicas": self.adding,
            "version": 3,
        }
        if self.unsettled is not None:
            value["creating"] = self.unsettled
        return _encode(value)

    @classmethod
    def decode(cls, path: str, data: bytes) -> "TopicNode":
        value = _decode(path, data)
        try:
            unsettled = value.get("creating")
            return cls(
                topic_id=uuid_from_text(value["topic_id"]),
                partitions=_replicas_by_partition(value["partitions"]),
                adding=_replicas_by_partition(value.get("adding_replicas", {})),
                removing=_replicas_by_partition(value.get("removing_replicas", {})),
                unsettled=(unsettled[0], unsettled[1]) if unsettled else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise NodeUnreadable(path, error) from error


def _replicas_by_partition(value: Mapping[str, list[int]]) -> dict[int, tuple[int, ...]]:
    return {int(number): tuple(replicas) for number, replicas in value.items()}


def encode_config(config: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(config)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    if not data and path.startswith("/config/users/"):
        return {}  # Kafka makes a user without settings to hold the nodes of its clients.
    value = _decode(path, data)
    try:
        return {str(key): str(setting) for key, setting in value["config"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise NodeUnreadable(path, error) from error


def encode_config_change(kind: str, name: str) -> bytes:
    return _encode({"version": 2, "entity_path": f"{kind}/{name}"})


def decode_config_change(path: str, data: bytes) -> ConfigKey:
    """Which entity to read again; Kafka wrote two forms of it."""
    value = _decode(path, data)
    try:
        if value["version"] == 1:
            value["entity_path"] = f"{value['entity_type']}/{value['entity_name']}"
        kind, _, name = str(value["entity_path"]).partition("/")
    except (KeyError, TypeError) as error:
        raise NodeUnreadable(path, error) from error
    if kind not in CONFIG_KINDS or not name:
        raise NodeUnreadable(path, f"{kind}/{name} is no entity with settings")
    return kind, name


class AskedPartition(NamedTuple):
    """A partition somebody named in a node below /admin."""

    topic: str
    partition: int
    replicas: tuple[int, ...]  # Empty where an election is asked for.


def decode_asked_partitions(path: str, data: bytes) -> list[AskedPartition]:
    """What the classic tools write to ask for a reassignment or an election."""
    value = _decode(path, data)
    try:
        return [
            AskedPartition(
                topic=str(one["topic"]),
                partition=int(one["partition"]),
                replicas=tuple(int(replica) for replica in one.get("replicas", ())),
            )
            for one in value["partitions"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NodeUnreadable(path, error) from error


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    return _encode({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def decode_controller(data: bytes) -> int:
    """The broker that is the controller."""
    try:
        return int(_decode(CONTROLLER, data)["brokerid"])
    except (KeyError, TypeError, ValueError) as error:
        raise NodeUnreadable(CONTROLLER, error) from error


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    try:
        return str(_decode(CLUSTER_ID, data)["id"])
    except (KeyError, TypeError) as error:
        raise NodeUnreadable(CLUSTER_ID, error) from error


def decode_controller_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as error:
        raise NodeUnreadable(CONTROLLER_EPOCH, error) from error


class BrokerNode(NamedTuple):
    """How a broker announces itself."""

    endpoints: tuple[Endpoint, ...]
    rack: str | None
    registered_ms: int
    jmx_port: int = -1

    def encode(self) -> bytes:
        # Old readers know one host and port only: those of the plain listener, if there is one.
        plain = [e for e in self.endpoints if e.security_protocol == "PLAINTEXT"]
        value: dict[str, object] = {
            "features": {},
            "listener_security_protocol_map": {
                e.listener: e.security_protocol for e in self.endpoints
            },
            "endpoints": [_endpoint_text(e) for e in self.endpoints],
            "jmx_port": self.jmx_port,
            "port": plain[0].port if plain else -1,
            "host": plain[0].host if plain else None,
            "version": 5,
            "timestamp": str(self.registered_ms),
        }
        if self.rack is not None:
            value["rack"] = self.rack
        return _encode(value)

    @classmethod
    def decode(cls, path: str, data: bytes) -> "BrokerNode":
        value = _decode(path, data)
        try:
            protocols = value["listener_security_protocol_map"]
            return cls(
                endpoints=tuple(_endpoint(text, protocols) for text in value["endpoints"]),
                rack=value.get("rack"),
                registered_ms=int(value["timestamp"]),
                jmx_port=value.get("jmx_port", -1),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NodeUnreadable(path, error) from error


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return Endpoint(listener, host.strip("[]"), int(port), protocols.get(listener, listener))


class FenceState(StrEnum):
    STARTING = "starting"
    ACTIVE = "active"
    FENCED = "fenced"
    SHUTTING_DOWN = "shutting_down"


class PreviousShutdown(StrEnum):
    """What a broker's disk may have missed before this start."""

    CLEAN = "clean"  # All was on disk.
    CRASH = "crash"  # The process died, the machine did not: the page cache was kept.
    LOSSY = "lossy"  # The machine went down, or the disk is another one: records may be gone.


class FenceNode(NamedTuple):
    """Whether a broker may take part; its node's version numbers the broker's incarnations."""

    state: FenceState
    incarnation: str
    directory_ids: tuple[str, ...]
    # Stays LOSSY until the controller has taken the broker out of all it may have lost.
    prev_shutdown: PreviousShutdown
    epoch: int = -1  # The broker epoch that was last active; -1: none yet.

    def encode(self) -> bytes:
        return _encode(
            {
                "version": 1,
                "state": self.state,
                "incarnation": self.incarnation,
                "dir_ids": self.directory_ids,
                "prev_shutdown": self.prev_shutdown,
                "epoch": self.epoch,
            }
        )

    @classmethod
    def decode(cls, path: str, data: bytes) -> "FenceNode":
        value = _decode(path, data)
        try:
            return cls(
                state=FenceState(value["state"]),
                incarnation=value["incarnation"],
                directory_ids=tuple(value["dir_ids"]),
                prev_shutdown=PreviousShutdown(value["prev_shutdown"]),
                epoch=value["epoch"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NodeUnreadable(path, error) from error

    def with_state(self, state: FenceState) -> "FenceNode":
        return self._replace(state=state)

    def activated(self, epoch: int) -> "FenceNode":
        """The fence of an active broker; earlier losses are accounted for and not repeated."""
        return self._replace(
            state=FenceState.ACTIVE, prev_shutdown=PreviousShutdown.CLEAN, epoch=epoch
        )


class ProducerIdBlock(NamedTuple):
    """Producer ids [first, last] given to one broker."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        return _encode(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first),
                "block_end": str(self.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> "ProducerIdBlock":
        value = _decode(PRODUCER_ID_BLOCK, data)
        try:
            return cls(
                broker_id=value["broker"],
                first=int(value["block_start"]),
                last=int(value["block_end"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NodeUnreadable(PRODUCER_ID_BLOCK, error) from error
