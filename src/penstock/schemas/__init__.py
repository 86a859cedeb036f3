"""Value formats with a schema: Avro, JSON, Protobuf, and the five-byte header that names one.

One value at a time, without Spark: `avro` and `protobuf` parse, decode and encode; `wire_header` is
the header; `lookup` finds schemas by id in a folder, `registry_client` in a schema registry;
`subject_names` says which subject a schema belongs to; `definitions` and `compatibility` are what a
registry needs: schemas parsed, printed and compared; `documents` has JSON to bytes and back;
`dead_letters` is what the headers of an undecodable record say. `penstock.spark.formats` does the
same for columns of a data frame.
"""
