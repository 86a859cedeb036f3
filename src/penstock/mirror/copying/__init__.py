"""The way of the records: fetched as batches, sent on as batches, in one transaction with a map."""
