"""penstock up, down, status, services: the whole platform."""
