"""Quotas: over what time a rate is measured."""

from typing import Final

from penstock.config.settings import (
    ACTS,
    CLASS,
    INERT,
    INT,
    LOW,
    READ_ONLY,
    Bounds,
    Setting,
)

# One setting, two lines: a table is read down its columns.
# fmt: off
SETTINGS: Final = (
    # Windows.
    Setting("quota.window.num", INT, 11, Bounds(1), LOW, READ_ONLY,
            ACTS, "Samples a client's rate is measured over."),
    Setting("quota.window.size.seconds", INT, 1, Bounds(1), LOW, READ_ONLY,
            ACTS, "The length of one such sample."),
    Setting("controller.quota.window.num", INT, 11, Bounds(1), LOW, READ_ONLY,
            ACTS, "Samples the rate of changes to topics is measured over."),
    Setting("controller.quota.window.size.seconds", INT, 1, Bounds(1), LOW, READ_ONLY,
            ACTS, "The length of one such sample."),
    Setting("replication.quota.window.num", INT, 11, Bounds(1), LOW, READ_ONLY,
            ACTS, "Samples the rate of replication is measured over; unless set, one."),
    Setting("replication.quota.window.size.seconds", INT, 1, Bounds(1), LOW, READ_ONLY,
            ACTS, "The length of one such sample."),
    Setting("alter.log.dirs.replication.quota.window.num", INT, 11, Bounds(1), LOW, READ_ONLY,
            INERT, "Samples the rate of moves between directories is measured over."),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", INT,
            1, Bounds(1), LOW, READ_ONLY,
            INERT, "The length of one such sample."),
    Setting("client.quota.callback.class", CLASS, None, None, LOW, READ_ONLY,
            INERT, "A class that decides which quota a request counts against."),
)
# fmt: on
