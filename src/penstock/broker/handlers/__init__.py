"""One module per API: the request in, the response out. Files and sockets are below and above."""
