"""The schema registry: which schemas a subject has, under which ids, and which may come next.

The state is what the records of the topic `_schemas` say, in Confluent's format. `records` reads
and writes them, `state` is what they add up to, and the decisions (`registering`, `deleting`,
`settings`) answer a request and return the records to write. The reader of the topic alone changes
state, so an answer is never older or newer than the topic. All of this is pure: no socket, no
clock, no broker. What acts is in `service`.
"""
