"""The metadata store on a real ZooKeeper."""
