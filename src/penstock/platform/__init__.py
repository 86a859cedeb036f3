"""The whole platform by one command: broker, registry and whatever else, in one tree of processes.

    penstock up
    ├─ penstock server      the broker
    └─ penstock services    registry, ...: all that is light, in one process (`services`)

What is to run is worked out from one properties file (`settings`), and when something that died is
started again by a rule (`restarts`); both are pure. `tree` starts, watches, restarts and stops the
processes (`child`), asks whether they answer (`probing`), and keeps what other terminals want to
know in its directory (`directory`, `state`).
"""
