"""Kafka Connect: connectors by its contract, REST interface and topics, with tasks on Spark.

`values` and `records` are what a connector hands over, `plugins` what it is. `converters`,
`transforms` and `predicates` stand between its records and the bytes of a topic.
"""
