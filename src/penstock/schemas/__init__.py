"""Value formats with a schema: Avro, JSON, Protobuf, and the five-byte header that names one."""
