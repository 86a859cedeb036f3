"""A mirror at work: its tasks, where they run, and who looks after them."""
