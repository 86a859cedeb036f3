"""The small process that ends a dead broker's session at once."""
