"""The record batch: what producers send, the log stores and consumers read.

On the way through the broker a batch stays bytes: `batch` reads its header as a view and checks its
CRC. Decoding records (`record`), compression, the message sets of old clients (`legacy`) and the
checks that need single records (`validate`) are for the few places that cannot do without.
"""

Bytes = bytes | bytearray | memoryview  # What a batch arrives in, depending on where it was.
