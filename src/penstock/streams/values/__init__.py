"""What flows through a topology and how it is written: records, changes, windows, serdes."""
