"""The errors of connectors and of what stands between them and a topic.

PenstockError
└── ConnectError             a task fails with it, unless a more exact one is tolerated
    ├── DataError            a value that does not fit its schema or a transform
    ├── RetriableConnectError  the same may succeed a little later
    └── UnknownPlugin        no class of this name is there
"""

from typing import ClassVar

from penstock.errors import PenstockError


class ConnectError(PenstockError):
    """Something that ends a task. `java_name` is what Connect's dead letters call it."""

    java_name: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"


class DataError(ConnectError):
    """A value that is not what its schema or a step wants; `errors.tolerance` puts it aside."""

    java_name = "org.apache.kafka.connect.errors.DataException"


class RetriableConnectError(ConnectError):
    """A failure that passes by itself: the same call is made again."""

    java_name = "org.apache.kafka.connect.errors.RetriableException"


class UnknownPlugin(ConnectError):
    """A class that is not there."""
