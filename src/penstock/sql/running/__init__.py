"""SQL at work: the log of commands, the catalog that it gives, and the queries that run by it."""
