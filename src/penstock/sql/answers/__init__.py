"""What ksqlDB's clients are answered with, as documents; pure."""
