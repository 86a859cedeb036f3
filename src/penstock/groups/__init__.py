"""Groups of consumers: who is in them, what they own, how far they have read."""
