"""Interactive queries: a store's changelog, followed into SQLite and asked in process."""
