"""Record batches to Arrow columns and back, all rows at once."""
