"""The metadata store: one small tree of versioned nodes, whoever keeps it.

`store` says what a store is; `sqlite` keeps one in a file for a broker that stands alone.
"""
