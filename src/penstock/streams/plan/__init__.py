"""A topology as frozen data, with Kafka Streams' names, and as text in Kafka Streams' words."""
