"""Speed of the broker, beside the raw limit of the machine and Apache Kafka: see __main__.py."""
