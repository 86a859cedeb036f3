"""Topics into files of HDFS or of a local file system, and files back into topics."""
