"""JSON pointers (RFC 6901): where in an answer the records, their offsets and the next page are."""

from typing import Any

MISSING = object()  # Nothing is there, which is not the same as null.


def wrong_pointer(text: str | None) -> str | None:
    """What is wrong with a pointer; None: nothing. An empty one is the whole document."""
    if text and not text.startswith("/"):
        return f"a JSON pointer begins with a slash, {text} does not"
    return None


def found_at(document: Any, pointer: str) -> Any:
    """What a pointer points to; MISSING: nothing is there."""
    found = document
    for word in pointer.split("/")[1:]:
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name, MISSING)
        elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return MISSING
    return found
