"""Java source connectors in a JVM beside the task: how they are found, started, and read."""
