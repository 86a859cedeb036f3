"""What a broker does with a new image of the cluster: settings first, then its partitions."""

import logging

from penstock.broker.context import Broker
from penstock.cluster.image.image import CLUSTER_WIDE, ClusterImage

log = logging.getLogger("kafka.server.KafkaServer")


def note_image(broker: Broker, image: ClusterImage) -> None:
    """Know the image and its settings, without taking any partition from it."""
    before, broker.image = broker.image, image
    if before is image or before.configs is not image.configs:
        _take_dynamic_settings(broker, image)
        broker.quotas.take_configs(image.configs)
        broker.connection_quotas.take_configs(image.configs)
    if broker.access is not None:
        broker.access.take_image(image)
    for gone in before.topics.keys() - image.topics.keys():
        broker.metrics.forget_topic(gone)


def take_partitions(broker: Broker, image: ClusterImage) -> None:
    """Obey the image: lead, follow, open and retire as it says."""
    broker.partitions.apply(image)
    broker.groups.take_image(image)
    broker.transactions.coordinator.take_image(image)


def host_again(broker: Broker) -> None:
    """Take the partitions for which there was no room on a disk when their image came."""
    found = broker.partitions.host_again()
    if not found:
        return
    broker.groups.take_image(broker.image)
    broker.transactions.coordinator.take_image(broker.image)
    if broker.member is not None:
        broker.member.on_partitions_found(found)


def _take_dynamic_settings(broker: Broker, image: ClusterImage) -> None:
    cluster_wide = image.config("brokers", CLUSTER_WIDE)
    per_broker = image.config("brokers", str(broker.broker_id))
    known = broker.config
    broker.config = known.with_dynamic(cluster_wide, per_broker)
    for follow in broker.config_followers:
        follow(broker.config)  # Also of the same settings: a file that they name may be another.
    if broker.config is known:
        return
    for warning in broker.config.warnings:
        log.warning("%s", warning)
    broker.partitions.reconfigure_all(image)
