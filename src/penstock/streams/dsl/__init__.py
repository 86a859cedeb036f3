"""The DSL: small objects that add nodes to a graph, named as in Kafka Streams."""
