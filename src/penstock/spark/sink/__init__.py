"""Writing topics: rows to batches, exactly once or at least once."""
