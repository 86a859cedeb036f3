"""Records checked against the schemas they name: what a broker asks before it appends them."""
