"""Commands about groups and their offsets."""
