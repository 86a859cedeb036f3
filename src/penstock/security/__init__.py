"""Who somebody is, and what they may do: decided here as values, acted on by the floors above.

Nothing in this room opens a socket, reads a clock or waits. `acls` decides, `sasl` turns tokens
into principals, `tls` turns key stores into contexts, `delegation` gives out tokens.
"""
