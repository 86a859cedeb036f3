"""HasHeaderKey: a record with a header of a name."""

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Predicate
from penstock.connect.plugins.validators import NonEmptyText
from penstock.connect.records import ConnectRecord


class HasHeaderKey(Predicate):
    """Whether a header is there."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The name."""
        return ConfigDef(
            ConfigEntry(
                "name",
                ConfigType.STRING,
                NO_DEFAULT,
                Importance.MEDIUM,
                "The name of the header.",
                validator=NonEmptyText(),
            )
        )

    def test(self, record: ConnectRecord) -> bool:
        """Whether one of the headers has the name."""
        return any(one.name == self.config["name"] for one in record.headers)
