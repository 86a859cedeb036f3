"""One partition's log: appends, reads, cuts, retention and recovery over a row of segments."""
