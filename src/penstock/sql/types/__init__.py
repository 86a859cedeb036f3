"""What values are: ksqlDB's types, what becomes what, and how a value is written as text.

A value is a plain Python object: bool, int, float, Decimal, str, bytes, date, time, datetime
(aware, UTC), list, and dict for MAP and STRUCT alike; NULL is None.
"""
