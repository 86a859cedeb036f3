"""One module per API, each with its request, its response and the structures inside them.

A field names the versions in which it exists, so one class serves every version of its message.
The modules are imported on first use; `penstock.protocol.apis` knows which API lives where.
"""
