"""The broker process: what it is made of, and how a request finds its handler."""
