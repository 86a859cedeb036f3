"""The work of the nodes: pure steps, which take a record and a key's state and return both anew."""
