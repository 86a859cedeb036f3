"""`format("penstock")`: the door through which Spark comes in.

It knows the schema and which reader or writer to make; what they do is in `reader`,
`stream_reader` and `sink`.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.spark.options import OptionError, chosen_columns, read_options, write_options

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_SPARK_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}


def spark_schema(columns: tuple[str, ...]) -> StructType:
    """The schema of some of the columns."""
    return StructType([StructField(name, _SPARK_TYPES[name]) for name in columns])


class PenstockDataSource(DataSource):
    """Topics as data frames, with the schema and the options of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return "penstock"

    def schema(self) -> StructType:
        """The columns that the options ask for."""
        return spark_schema(chosen_columns(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        from penstock.spark.source.reader import PenstockReader

        self._check_schema(schema)
        return PenstockReader(read_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For `spark.readStream`."""
        from penstock.spark.source.stream_reader import PenstockStreamReader

        self._check_schema(schema)
        return PenstockStreamReader(read_options(self.options, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For `DataFrame.write`."""
        from penstock.spark.sink.sink import batch_writer

        return batch_writer(write_options(self.options), schema, overwrite)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """For `DataFrame.writeStream`."""
        from penstock.spark.sink.sink import stream_writer

        return stream_writer(write_options(self.options), schema, overwrite)

    def _check_schema(self, schema: StructType) -> None:
        expected = self.schema()
        if [(f.name, f.dataType) for f in schema] != [(f.name, f.dataType) for f in expected]:
            raise OptionError(
                "A penstock source has a fixed schema: use the options 'columns' and "
                f"'includeHeaders' instead of a schema. It is {expected.simpleString()}, "
                f"not {schema.simpleString()}"
            )
