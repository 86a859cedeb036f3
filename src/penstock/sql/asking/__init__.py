"""Questions: records of a topic as rows, a table as it is now, a topic as it is printed."""
