"""Commands about replicas: where they are, who leads, whether they agree."""
