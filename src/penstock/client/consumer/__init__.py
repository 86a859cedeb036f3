"""Consumer and what it is made of."""
