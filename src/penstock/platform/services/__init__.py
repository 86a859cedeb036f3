"""The light services in one process and one event loop, each on a port of its own.

What goes wrong in one of them costs that one alone: it is closed and opened again, and its port
says so meanwhile.
"""
