"""The plug-ins of the house, under the class names of Java's that they stand for.

Tables: kind, then name, then `module:Class`. The kinds are those of `lookup.PluginKind`.
"""

from typing import Final

_OURS: Final = "penstock.connect"
_TRANSFORMS: Final = "org.apache.kafka.connect.transforms"
_CONVERTERS: Final = "org.apache.kafka.connect.converters"

# Transforms of one side of a record: Java has `Name$Key` and `Name$Value`, here they are NameKey
# and NameValue of one module.
_SIDED: Final = {
    "Cast": "cast",
    "ExtractField": "extract_field",
    "Flatten": "flatten",
    "HeaderFrom": "header_from",
    "HoistField": "hoist_field",
    "InsertField": "insert_field",
    "MaskField": "mask_field",
    "ReplaceField": "replace_field",
    "SetSchemaMetadata": "set_schema_metadata",
    "TimestampConverter": "timestamp_converter",
}
_WHOLE: Final = {
    "DropHeaders": "drop_headers",
    "Filter": "filter",
    "InsertHeader": "insert_header",
    "RegexRouter": "regex_router",
    "TimestampRouter": "timestamp_router",
    "ValueToKey": "value_to_key",
}
_PRIMITIVE: Final = ("Boolean", "Double", "Float", "Integer", "Long", "Short")

# Where each connector is, and the package of Java's that users know its class by.
_CONNECTORS: Final = {
    "coap.sink:CoapSinkConnector": "coap",
    "coap.source:CoapSourceConnector": "coap",
    "datagen.source:DatagenConnector": "io.confluent.kafka.connect.datagen",
    "dynamodb.source:DynamoDbSourceConnector": f"{_OURS}.connectors.dynamodb.source",
    "elasticsearch.sink:ElasticsearchSinkConnector": "io.confluent.connect.elasticsearch",
    "file.sink:FileStreamSinkConnector": "org.apache.kafka.connect.file",
    "file.source:FileStreamSourceConnector": "org.apache.kafka.connect.file",
    "hdfs.sink:HdfsSinkConnector": "io.confluent.connect.hdfs",
    "hdfs.source:HdfsSourceConnector": "io.confluent.connect.hdfs",
    "http.sink:HttpSinkConnector": "io.confluent.connect.http",
    "http.source:HttpSourceConnector": "io.confluent.connect.http",
    "jdbc.sink:JdbcSinkConnector": "io.confluent.connect.jdbc",
    "jdbc.source:JdbcSourceConnector": "io.confluent.connect.jdbc",
    "lake.sink:LakeSinkConnector": f"{_OURS}.connectors.lake.sink",
    "mqtt.sink:MqttSinkConnector": "io.confluent.connect.mqtt",
    "mqtt.source:MqttSourceConnector": "io.confluent.connect.mqtt",
    "mysql.source:MariaDbConnector": "io.debezium.connector.mariadb",
    "mysql.source:MySqlConnector": "io.debezium.connector.mysql",
    "postgres.source:PostgresConnector": "io.debezium.connector.postgresql",
    "rabbitmq.sink:RabbitMQSinkConnector": "io.confluent.connect.rabbitmq.sink",
    "rabbitmq.source:RabbitMQSourceConnector": "io.confluent.connect.rabbitmq",
    "redis.sink:RedisSinkConnector": "com.redis.kafka.connect",
    "redis.source:RedisStreamSourceConnector": "com.redis.kafka.connect",
    "s3.sink:S3SinkConnector": "io.confluent.connect.s3",
    "s3.source:S3SourceConnector": "io.confluent.connect.s3.source",
    "syslog.source:SyslogSourceConnector": "io.confluent.connect.syslog",
}

BUILT_IN: Final[dict[str, dict[str, str]]] = {
    "connectors": {
        f"{package}.{place.partition(':')[2]}": f"{_OURS}.connectors.{place}"
        for place, package in _CONNECTORS.items()
    },
    "converters": {
        "org.apache.kafka.connect.json.JsonConverter": f"{_OURS}.converters.json:JsonConverter",
        "org.apache.kafka.connect.storage.StringConverter": (
            f"{_OURS}.converters.text:StringConverter"
        ),
        f"{_CONVERTERS}.ByteArrayConverter": f"{_OURS}.converters.numbers:ByteArrayConverter",
        **{
            f"{_CONVERTERS}.{name}Converter": f"{_OURS}.converters.numbers:{name}Converter"
            for name in _PRIMITIVE
        },
        "io.confluent.connect.avro.AvroConverter": f"{_OURS}.converters.avro:AvroConverter",
        "io.confluent.connect.json.JsonSchemaConverter": (
            f"{_OURS}.converters.json_schema:JsonSchemaConverter"
        ),
        "io.confluent.connect.protobuf.ProtobufConverter": (
            f"{_OURS}.converters.protobuf:ProtobufConverter"
        ),
    },
    "header_converters": {
        "org.apache.kafka.connect.storage.SimpleHeaderConverter": (
            f"{_OURS}.converters.headers:SimpleHeaderConverter"
        ),
        "org.apache.kafka.connect.json.JsonConverter": f"{_OURS}.converters.headers:JsonHeaders",
        "org.apache.kafka.connect.storage.StringConverter": (
            f"{_OURS}.converters.headers:StringHeaders"
        ),
        f"{_CONVERTERS}.ByteArrayConverter": f"{_OURS}.converters.headers:ByteArrayHeaders",
    },
    "transforms": {
        **{
            f"{_TRANSFORMS}.{name}${side}": f"{_OURS}.transforms.{module}:{name}{side}"
            for name, module in _SIDED.items()
            for side in ("Key", "Value")
        },
        **{
            f"{_TRANSFORMS}.{name}": f"{_OURS}.transforms.{module}:{name}"
            for name, module in _WHOLE.items()
        },
    },
    "predicates": {
        f"{_TRANSFORMS}.predicates.HasHeaderKey": f"{_OURS}.predicates.headers:HasHeaderKey",
        f"{_TRANSFORMS}.predicates.RecordIsTombstone": (
            f"{_OURS}.predicates.tombstones:RecordIsTombstone"
        ),
        f"{_TRANSFORMS}.predicates.TopicNameMatches": f"{_OURS}.predicates.topics:TopicNameMatches",
    },
    "config_providers": {
        f"org.apache.kafka.common.config.provider.{name}ConfigProvider": (
            f"{_OURS}.providers.{module}:{name}ConfigProvider"
        )
        for name, module in {
            "File": "files",
            "Directory": "directories",
            "EnvVar": "environment",
        }.items()
    },
}
