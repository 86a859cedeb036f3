"""What a log knows of its producers, in memory and in the snapshots on disk."""
