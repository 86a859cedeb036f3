"""HdfsSinkConnector: records of topics as files, exactly once as S3's sink.

Files are named after their first offset alone, where Confluent's have the last one too: a replay
then finds its own name.
"""

from penstock.connect.connectors.hdfs.settings import HDFS
from penstock.connect.connectors.objects.connectors import ObjectSinkConnector
from penstock.connect.connectors.objects.sink import ObjectSinkTask


class HdfsSinkTask(ObjectSinkTask):
    """Writes its partitions to the file system."""

    kind = HDFS


class HdfsSinkConnector(ObjectSinkConnector):
    """Writes HDFS."""

    task = HdfsSinkTask
