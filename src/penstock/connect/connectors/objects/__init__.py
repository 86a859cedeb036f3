"""What connectors of object stores and file systems share: formats, folders, cuts, reading.

A connector of one store (`s3`, `hdfs`) adds its settings and an `ObjectStore`.
"""
