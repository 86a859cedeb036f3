"""Commands that run, stop and show ZooKeeper."""
