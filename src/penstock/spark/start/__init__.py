"""Starting Spark: its JVM, its sessions, its Python processes, a cluster of one's own."""
