"""What connectors of queues, sensors and HTTP share: TLS, payloads, acknowledged records."""
