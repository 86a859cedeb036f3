"""kafka-topics."""
