"""The metadata store of several broker processes on one machine: one file, no server."""
