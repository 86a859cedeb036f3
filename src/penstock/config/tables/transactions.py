"""Producers with a number: idempotence and transactions."""

from typing import Final

from penstock.config.settings import (
    ACTS,
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INERT,
    INT,
    LOW,
    READ_ONLY,
    SHORT,
    Bounds,
    Setting,
)

# One setting, two lines: a table is read down its columns.
# fmt: off
SETTINGS: Final = (
    # Producers.
    Setting("producer.id.expiration.ms", INT, 86_400_000, Bounds(1), LOW, CLUSTER_WIDE,
            ACTS, "How long a silent producer is remembered."),
    Setting("producer.id.expiration.check.interval.ms", INT, 600_000, Bounds(1), LOW, READ_ONLY,
            ACTS, "How often producers to forget are looked for.", internal=True),
    # Transactions.
    Setting("transactional.id.expiration.ms", INT, 604_800_000, Bounds(1), HIGH, READ_ONLY,
            ACTS, "How long an unused transactional id is remembered."),
    Setting("transaction.max.timeout.ms", INT, 900_000, Bounds(1), HIGH, READ_ONLY,
            ACTS, "The longest timeout a producer may ask for."),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT,
            10_000, Bounds(1), LOW, READ_ONLY,
            ACTS, "How often transactions past their time are aborted."),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT,
            3_600_000, Bounds(1), LOW, READ_ONLY,
            ACTS, "How often expired ids are removed."),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE,
            ACTS, "Whether a leader asks the coordinator before it takes records."),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW, READ_ONLY,
            INERT, "Whether a producer may prepare a transaction and decide later."),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, Bounds(1), HIGH, READ_ONLY,
            ACTS, "How long a partition waits before it is added again."),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, Bounds(0), HIGH, READ_ONLY,
            ACTS, "The longest such wait in all."),
    # The topic.
    Setting("transaction.state.log.num.partitions", INT, 50, Bounds(1), HIGH, READ_ONLY,
            ACTS, "Partitions of __transaction_state; fixed once it exists."),
    Setting("transaction.state.log.replication.factor", SHORT, 3, Bounds(1), HIGH, READ_ONLY,
            ACTS, "Replicas of __transaction_state."),
    Setting("transaction.state.log.min.isr", INT, 2, Bounds(1), HIGH, READ_ONLY,
            ACTS, "In-sync replicas __transaction_state needs."),
    Setting("transaction.state.log.segment.bytes", INT, 100 << 20, Bounds(1), HIGH, READ_ONLY,
            ACTS, "Segment size of __transaction_state, small so that it loads fast."),
    Setting("transaction.state.log.load.buffer.size", INT, 5 << 20, Bounds(1), HIGH, READ_ONLY,
            ACTS, "How many bytes are read at a time when state is loaded."),
)
# fmt: on
