"""What an object store or a file system must do for the connectors, and no more.

Names are texts with slashes, without one at the beginning. An object appears whole or not at all,
and one that is stored again under its name takes the place of the first.
"""

from collections.abc import Iterator
from typing import IO, Protocol


class ObjectStore(Protocol):
    """One bucket, or one folder of a file system.

    What may pass by itself is a RetriableConnectError, anything else a ConnectError.
    """

    def check(self) -> None:
        """Raise if the store is not there or does not let us in."""

    def put(self, name: str, content: IO[bytes]) -> None:
        """Store everything in the file, from its beginning."""

    def get(self, name: str) -> IO[bytes]:
        """An object as a file that can be sought; whoever gets it closes it."""

    def folders(self, folder: str) -> Iterator[str]:
        """The folder and all folders below it, without a slash at the end."""

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        """The objects right in a folder whose whole names sort after one, in order."""

    def close(self) -> None:
        """End."""
