"""What a broker does beside requests: chores by the clock, compaction, failed disks."""
