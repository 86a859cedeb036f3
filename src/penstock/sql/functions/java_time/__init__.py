"""Dates and times by patterns of Java's DateTimeFormatter: `yyyy-MM-dd'T'HH:mm:ssX`."""
