"""Log directories: their disks, their locks, their checkpoints, and the room in them."""
