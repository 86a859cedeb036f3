"""The columns of a topic, named as Spark's own Kafka source names them.

Plain names without PySpark or pyarrow: `source` makes Spark's types of them and `arrow_records`
the batches.
"""

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
DEFAULT_COLUMNS = COLUMNS[:-1]  # Headers only where they are asked for.
RANGE_END = -1  # As `timestampType`: no record, but the end of a range, which is the row's offset.
RANGE_END_COLUMNS = ("topic", "partition", "offset", "timestampType")
