"""The Spark connector: topics as data frames, batch and streaming."""
