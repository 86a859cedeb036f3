"""Dead letters of a sync: records that do not become rows, written to a topic exactly once.

They go through the same writer as any stream to a topic, by the tasks that write the table's files.
A batch counts for Spark only when both are committed, table first; each knows a batch that is
replayed, so that a crash between the two doubles nothing and loses nothing.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from penstock.lake.spec import TableSpec, TopicDecoding
from penstock.spark.formats.dead_letter_rows import DEAD_LETTER_TYPE
from penstock.spark.options import write_options
from penstock.spark.sink.sink import stream_writer

_PREFIX = "penstock-lake"
_CONNECTION = ("kafka.bootstrap.servers", "kafka.client.id", "kafka.request.timeout.ms")
_SECURITY = ("kafka.security.", "kafka.ssl.", "kafka.sasl.")


def dead_letter_writer(spec: TableSpec) -> DataSourceStreamArrowWriter | None:
    """The writer of the query's dead letters; None: it has none."""
    decoding = spec.decoding
    if decoding is None or decoding.dead_letter_topic is None:
        return None
    options = write_options(_options(decoding))
    return stream_writer(options, DEAD_LETTER_TYPE, False)


def _options(decoding: TopicDecoding) -> dict[str, str]:
    """How the source reaches the cluster; the rest of its settings are a consumer's."""
    source: Mapping[str, str] = decoding.source or {}
    same = {k: v for k, v in source.items() if k in _CONNECTION or k.startswith(_SECURITY)}
    return {**same, "includeHeaders": "true", "transactionalIdPrefix": _PREFIX}
