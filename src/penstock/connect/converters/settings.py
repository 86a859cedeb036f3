"""The setting that all converters have: which part of a record they convert."""

from penstock.connect.plugins.config_def import NO_DEFAULT, ConfigEntry, ConfigType, Importance
from penstock.connect.plugins.validators import OneOfWords

CONVERTER_TYPE = ConfigEntry(
    "converter.type",
    ConfigType.STRING,
    NO_DEFAULT,
    Importance.LOW,
    "Which part of a record it converts; the worker sets it.",
    validator=OneOfWords(("key", "value", "header")),
)


def converter_type(is_key: bool) -> dict[str, str]:
    """The setting as the worker sets it."""
    return {CONVERTER_TYPE.name: "key" if is_key else "value"}
