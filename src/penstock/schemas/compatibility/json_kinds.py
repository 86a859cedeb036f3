"""The kinds of differences between JSON schemas: which do no harm, and how each is told."""

_HARMLESS_ENDINGS = {
    "INCREASED": ("MAX_", "MAXIMUM", "EXCLUSIVE_MAXIMUM"),
    "DECREASED": ("MIN_", "MINIMUM", "EXCLUSIVE_MINIMUM"),
}
_HARMLESS = {
    "ADDITIONAL_ITEMS_ADDED",
    "ADDITIONAL_ITEMS_EXTENDED",
    "ADDITIONAL_PROPERTIES_ADDED",
    "ADDITIONAL_PROPERTIES_EXTENDED",
    "COMBINED_TYPE_EXTENDED",
    "DEPENDENCY_ARRAY_NARROWED",
    "DEPENDENCY_ARRAY_REMOVED",
    "DEPENDENCY_SCHEMA_REMOVED",
    "ENUM_ARRAY_EXTENDED",
    "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
    "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
    "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
    "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "MULTIPLE_OF_REDUCED",
    "MULTIPLE_OF_REMOVED",
    "NOT_TYPE_NARROWED",
    "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    "PATTERN_REMOVED",
    "PRODUCT_TYPE_NARROWED",
    "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "REQUIRED_ATTRIBUTE_REMOVED",
    "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
    "SCHEMA_REMOVED",
    "SUM_TYPE_EXTENDED",
    "TYPE_EXTENDED",
    "UNIQUE_ITEMS_REMOVED",
}
_BOUNDED = ("MAX", "MIN", "EXCLUSIVE_")
_MORE = "has more elements in the {0} schema than the {1} schema"
_FEWER = "has fewer elements in the {0} schema than the {1} schema"
_VALUE = "its value in the {1} schema"
_TYPE = "is different between the {0} schema and the {1} schema"


def is_harmless(kind: str) -> bool:
    """Whether a reader takes all that a writer let through, in spite of the difference."""
    if kind in _HARMLESS:
        return True
    what, _, change = kind.rpartition("_")
    if change == "REMOVED" and what.startswith(_BOUNDED):
        return True
    return what.startswith(_HARMLESS_ENDINGS.get(change, ("-",)))


def sentence_of(kind: str, path: str) -> str:
    """The sentence for a kind that does harm; {0} is the reader's schema, {1} the writer's."""
    what, _, change = kind.rpartition("_")
    if "CONTENT_MODEL" in kind:
        return _content_model(kind, path)
    if kind.startswith(("ADDITIONAL", "SCHEMA_ADDED")) and change in ("REMOVED", "ADDED"):
        return (
            f"The keyword at path '{path}' in the {{0}} schema is not present in the {{1}} schema"
        )
    match change:
        case "ADDED":
            told = "in the {0} schema is not present in the {1} schema"
            return f"The keyword at path '{path}' {told}"
        case "INCREASED" | "EXPANDED":
            return f"The value at path '{path}' in the {{0}} schema is more than {_VALUE}"
        case "DECREASED":
            return f"The value at path '{path}' in the {{0}} schema is less than {_VALUE}"
        case "NARROWED" if what != "TYPE":
            return f"An array or combined type at path '{path}' {_FEWER}"
        case "EXTENDED":
            return f"An array or combined type at path '{path}' {_MORE}"
        case "CHANGED" if what in ("PATTERN", "MULTIPLE_OF", "DEPENDENCY_ARRAY"):
            return f"The value at path '{path}' is different between the {{0}} and {{1}} schema"
        case _:
            return f"A type at path '{path}' {_TYPE}"


def _content_model(kind: str, path: str) -> str:
    if kind.endswith("ADDED_TO_OPEN_CONTENT_MODEL"):
        return (
            "The {0} schema has an open content model and has a property or item at path "
            f"'{path}' which is missing in the {{1}} schema"
        )
    if kind.endswith("ADDED_TO_UNOPEN_CONTENT_MODEL"):
        return (
            "The {0} schema has an unopen content model and has a required property at path "
            f"'{path}' which is missing in the {{1}} schema"
        )
    if kind.endswith("REMOVED_FROM_CLOSED_CONTENT_MODEL"):
        return (
            "The {0} schema has a closed content model and is missing a property or item present "
            f"at path '{path}' in the {{1}} schema"
        )
    if "_REMOVED_NOT_" in kind:
        return (
            "A property or item is missing in the {0} schema but present at path "
            f"'{path}' in the {{1}} schema and is not covered by its partially open content model"
        )
    return (
        f"The {{0}} schema has a property or item at path '{path}' which is missing in the {{1}} "
        "schema and is not covered by its partially open content model"
    )
