"""Answers that several coroutines make, of which some may never get to be awaited."""

from collections.abc import Iterable
from inspect import iscoroutine


def close_all(answers: Iterable[object]) -> None:
    """End what has not been awaited: the client went away while it waited for an earlier part."""
    for answer in answers:
        if iscoroutine(answer):
            answer.close()
