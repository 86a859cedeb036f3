"""Transactions: the machine, its coordinator, its markers and the records that keep it."""
