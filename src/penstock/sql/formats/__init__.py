"""Columns as bytes: KAFKA, JSON, DELIMITED, and the formats whose schemas a registry keeps."""
