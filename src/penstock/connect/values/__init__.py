"""Connect's data: schemas, structs, logical types, and how values become text and back."""
