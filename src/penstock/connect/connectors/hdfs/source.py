"""HdfsSourceConnector: files as records, exactly once where the worker is set so."""

from penstock.connect.connectors.hdfs.settings import HDFS
from penstock.connect.connectors.objects.connectors import ObjectSourceConnector
from penstock.connect.connectors.objects.source import ObjectSourceTask


class HdfsSourceTask(ObjectSourceTask):
    """Reads its share of the folders."""

    kind = HDFS


class HdfsSourceConnector(ObjectSourceConnector):
    """Reads HDFS."""

    task = HdfsSourceTask
