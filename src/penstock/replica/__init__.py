"""The data plane: the partitions this broker hosts, their leaders' rules and their waiters."""
