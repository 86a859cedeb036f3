"""Replicas, leaders and the controller."""

from typing import Final

from penstock.config.settings import (
    ACTS,
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INERT,
    INT,
    LONG,
    LONG_MAX,
    MEDIUM,
    READ_ONLY,
    STRING,
    Bounds,
    OneOf,
    Setting,
)

# One setting, two lines: a table is read down its columns.
# fmt: off
SETTINGS: Final = (
    # In-sync replicas.
    Setting("min.insync.replicas", INT, 1, Bounds(1), HIGH, CLUSTER_WIDE, ACTS,
            "How many replicas must have a record before acks=all is answered. A cluster stores it"
            " at its first start; from then on it is changed with kafka-configs."),
    Setting("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE,
            ACTS, "Whether a replica that may lack records can become leader."),
    Setting("unclean.leader.election.interval.ms", LONG, 300_000, Bounds(1), MEDIUM, READ_ONLY,
            INERT, "How often such elections are looked for.", internal=True),
    Setting("replica.lag.time.max.ms", LONG, 30_000, None, HIGH, READ_ONLY,
            ACTS, "How long a follower may be behind before it leaves the in-sync replicas."),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, None, HIGH, READ_ONLY,
            ACTS, "How often high watermarks are written down."),
    Setting("replica.selector.class", STRING, None,
            OneOf("org.apache.kafka.common.replica.RackAwareReplicaSelector",
                  "org.apache.kafka.common.replica.LeaderSelector"), MEDIUM, READ_ONLY, ACTS,
            "Which replica a consumer reads from: one in its rack, or the leader (the default)."),
    # Fetching from the leader.
    Setting("num.replica.fetchers", INT, 1, Bounds(1), HIGH, CLUSTER_WIDE,
            ACTS, "Connections per leader that followers fetch through."),
    Setting("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY,
            ACTS, "How many bytes a follower's fetch waits for."),
    Setting("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY,
            ACTS, "How long it waits for them."),
    Setting("replica.fetch.max.bytes", INT, 1 << 20, Bounds(0), MEDIUM, READ_ONLY,
            ACTS, "How many bytes it asks for per partition."),
    Setting("replica.fetch.response.max.bytes", INT, 10 << 20, Bounds(0), MEDIUM, READ_ONLY,
            ACTS, "How many bytes it asks for in all."),
    Setting("replica.fetch.backoff.ms", INT, 1000, Bounds(0), MEDIUM, READ_ONLY,
            ACTS, "How long a partition rests after a failed fetch."),
    Setting("replica.socket.timeout.ms", INT, 30_000, None, HIGH, READ_ONLY,
            ACTS, "How long a request between replicas may take."),
    Setting("replica.socket.receive.buffer.bytes", INT, 65_536, Bounds(-1), HIGH, READ_ONLY,
            ACTS, "The receive buffer of a follower's socket."),
    Setting("num.replica.alter.log.dirs.threads", INT, None, None, HIGH, READ_ONLY,
            ACTS, "How many replicas move between data directories at a time."),
    Setting("leader.replication.throttled.rate", LONG, LONG_MAX, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "Bytes a second a leader may send for throttled replicas."),
    Setting("follower.replication.throttled.rate", LONG, LONG_MAX, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "Bytes a second a follower may fetch for throttled replicas."),
    Setting("replica.alter.log.dirs.io.max.bytes.per.second", LONG,
            LONG_MAX, Bounds(0), MEDIUM, CLUSTER_WIDE,
            ACTS, "Bytes a second for moves between data directories."),
    # Leaders and the controller.
    Setting("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY,
            ACTS, "Whether leadership goes back to the preferred replicas by itself."),
    Setting("leader.imbalance.check.interval.seconds", LONG, 300, Bounds(1), HIGH, READ_ONLY,
            ACTS, "How often the balance of leaders is looked at."),
    Setting("leader.imbalance.per.broker.percentage", INT, 10, None, HIGH, READ_ONLY,
            ACTS, "How many percent of a broker's leaders may be others before they move back."),
    Setting("controller.socket.timeout.ms", INT, 30_000, None, MEDIUM, READ_ONLY,
            INERT, "How long a request of the controller to a broker may take."),
    Setting("inter.broker.protocol.version", STRING, "3.9-IV0", None, MEDIUM, READ_ONLY,
            INERT, "The protocol between brokers of Kafka before 4.0; ours has one."),
)
# fmt: on
