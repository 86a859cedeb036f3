"""Taking over log directories that the metadata store knows nothing of.

A data directory may come from an Apache Kafka, or its metadata file may have been lost. When a
store is new and the directories hold partitions, their topics are entered under the names and ids
found on disk, so that nothing is set aside that a user just brought along.
"""

import logging
from collections import defaultdict

from penstock.cluster.control.controller import Controller, TopicToCreate
from penstock.errors import ProtocolError
from penstock.storage.directories.log_dirs import LogDirs

log = logging.getLogger("kafka.server.KafkaServer")


async def adopt_found_topics(controller: Controller, log_dirs: LogDirs, *, broker_id: int) -> None:
    """Enter every complete topic found on disk; only for a store that has just been made."""
    found: dict[str, dict[int, bytes | None]] = defaultdict(dict)
    for partition, topic_id in log_dirs.found_logs():
        found[partition.topic][partition.partition] = topic_id
    for name, ids in sorted(found.items()):
        if sorted(ids) != list(range(len(ids))):
            log.warning("Topic %s is not adopted: only partitions %s are here", name, sorted(ids))
            continue
        topic = TopicToCreate(
            name=name,
            partition_count=-1,
            replication_factor=-1,
            assignments=dict.fromkeys(ids, (broker_id,)),
            configs={},
            topic_id=next((known for known in ids.values() if known), None),
        )
        (outcome,) = await controller.create_topics([topic], validate_only=False)
        if isinstance(outcome, ProtocolError):
            log.warning("Topic %s is not adopted: %s", name, outcome)
        else:
            log.info("Adopted topic %s with %d partitions found on disk", name, len(ids))
