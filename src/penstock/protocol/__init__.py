"""Kafka's messages as pure data: what a request or response is, and its bytes in every version.

Nothing here knows sockets, topics or time. `schema` is the layer in which messages are declared,
`messages/` has one module per API, `apis` lists the APIs and finds their classes, `headers` has
the few bytes that stand before each message.
"""
