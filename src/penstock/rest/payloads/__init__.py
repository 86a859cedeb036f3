"""The embedded formats: what stands in a request as the bytes of a record, and back."""
