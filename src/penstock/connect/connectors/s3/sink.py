"""S3SinkConnector: records of topics as objects of a bucket.

Exactly once, where folders and cuts follow from the records alone: objects are named after their
first offset, so a replay stores the same objects again.
"""

from penstock.connect.connectors.objects.connectors import ObjectSinkConnector
from penstock.connect.connectors.objects.sink import ObjectSinkTask
from penstock.connect.connectors.s3.settings import S3


class S3SinkTask(ObjectSinkTask):
    """Writes its partitions to the bucket."""

    kind = S3


class S3SinkConnector(ObjectSinkConnector):
    """Writes S3."""

    task = S3SinkTask
