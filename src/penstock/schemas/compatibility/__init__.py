"""Whether readers under one schema understand what was written under another, and if not, why.

`levels` asks the question over a subject's history; `avro`, `json_schema` and `protobuf` answer it
for one pair. Kinds, paths and sentences are those that users of Confluent's registry know.
"""
