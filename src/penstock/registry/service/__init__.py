"""The registry as a process: the topic `_schemas` read and written, and Confluent's HTTP interface.

    topic `_schemas` → store.py follows it into the state → routes answer from the state
    a change → decided on the state → written by store.py → read back → answered

Everything that is decided is decided in the package above, which is pure. Here are the topic
(`preparing`, `topic`, `store`), the routes (`subjects`, `schemas`, `settings`, which make up the
`application`), the settings of the process (`config`) and the process itself (`process`).
"""
