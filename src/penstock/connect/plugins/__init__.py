"""What a connector, converter, transform or predicate is, how it is configured and found."""
