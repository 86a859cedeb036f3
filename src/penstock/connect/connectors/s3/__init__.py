"""Topics into objects of S3, and objects back into topics, under Confluent's class names."""
