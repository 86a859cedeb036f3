"""The test driver: a whole topology in memory, on a clock of its own."""
