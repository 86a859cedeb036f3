"""Filter: drops every record; a predicate says which ones come to it."""

from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Transform
from penstock.connect.records import ConnectRecord


class Filter(Transform):
    """Drops records."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        """It has no settings."""
        return ConfigDef()

    def apply(self, record: ConnectRecord) -> None:
        """None: the record is dropped."""
        return
