"""An error as a part of an answer: the one place that writes a code, and the sentence beside it.

What a handler raises becomes an answer in broker/dispatch.py. What goes wrong for one topic or
partition of many is caught by its handler, and told in the place that the response has for it.
"""

from typing import Any, TypeVar

from penstock.errors import ErrorCode, ProtocolError

T = TypeVar("T")


def code_of(error: ProtocolError | None) -> int:
    """The number on the wire; None: nothing went wrong."""
    return int(ErrorCode.NONE if error is None else error.code)


def fail(answer: T, error: ProtocolError | None) -> T:
    """Write into an answer, or a part of one, what went wrong; None: nothing did."""
    told: Any = answer
    told.error_code = code_of(error)
    if hasattr(told, "error_message"):
        told.error_message = None if error is None else str(error)
    return answer
