"""penstock cluster: up, status."""
