"""Words for who may use a node; which node gets which is the `cluster` package's to say."""

from enum import Enum


class Access(Enum):
    """Who may do what with a node, in a store that can tell people apart."""

    OPEN = "open"  # Everybody may do everything.
    READABLE = "readable"  # Who made it may do everything, others may read.
    PRIVATE = "private"  # Nobody else may even read it.
