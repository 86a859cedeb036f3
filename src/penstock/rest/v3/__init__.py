"""Version 3 of the API: the cluster's resources, streamed produce, streams of records."""
