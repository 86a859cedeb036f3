"""A broker in its cluster: registration, the controller, images, forwarding."""
