"""Producer and what it is made of."""
