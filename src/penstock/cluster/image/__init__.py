"""The cluster as one immutable value: read, published, followed."""
