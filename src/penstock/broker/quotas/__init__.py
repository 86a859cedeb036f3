"""Quotas: how much of the broker each client may use, and how long it is silent for taking more.

rates.py        what was used lately, and the time that brings it back within a limit
entities.py     whom a stored quota is for, and which of the eight levels counts for a client
clients.py      the meters of users and clients, changed live with the cluster image
mutations.py    changes of topics, which are refused rather than answered late
bill.py         one request: charged when it is answered, its connection muted after (KIP-219)
connections.py  how often an address, a listener and the broker take a new connection
"""
