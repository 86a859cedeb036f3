"""Version 2 of the API: produce, consume in groups, look at topics."""
