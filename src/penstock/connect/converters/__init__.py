"""Between Connect's values and the bytes of a topic, under the class names of Kafka."""
