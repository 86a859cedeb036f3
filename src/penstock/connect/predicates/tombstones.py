"""RecordIsTombstone: a record without a value."""

from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Predicate
from penstock.connect.records import ConnectRecord


class RecordIsTombstone(Predicate):
    """Whether a record deletes its key."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        """It has no settings."""
        return ConfigDef()

    def test(self, record: ConnectRecord) -> bool:
        """Whether the value is null."""
        return record.value is None
