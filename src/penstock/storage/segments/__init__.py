"""The files of a log: segments of batches, and the indexes that find something in them."""
