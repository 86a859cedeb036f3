"""Media types: which of those offered a client takes, and whether a body has one that is taken.

Pure. Of `Accept` the quality and the wildcards count (RFC 9110, 12.5.1), of a media type the name
alone: parameters such as charset change nothing, since everything here is UTF-8.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

ANYTHING = "*/*"
_REMEMBERED_CHARS = 500  # What is longer is not kept, so that nobody fills memory with it.


class _Wish(NamedTuple):
    """One element of an Accept header."""

    media: str
    quality: float

    def is_for(self, offered: str) -> bool:
        family = self.media.removesuffix("*")
        return self.media in (offered, ANYTHING) or (
            self.media.endswith("/*") and offered.startswith(family)
        )

    @property
    def precision(self) -> int:
        """A name counts before a family, a family before anything."""
        return 0 if self.media == ANYTHING else 1 if self.media.endswith("/*") else 2


def media_name(text: str) -> str:
    """`application/json` for `Application/JSON; charset=utf-8`."""
    return text.partition(";")[0].strip().lower()


def negotiated(accept: str | None, offered: Sequence[str]) -> str | None:
    """The offered type that the client likes best, the first of equals; None: it takes none."""
    if accept is None or not accept.strip():
        return offered[0]
    if len(accept) > _REMEMBERED_CHARS:
        return _best(accept, tuple(offered))
    return _remembered(accept, tuple(offered))


def _best(accept: str, offered: tuple[str, ...]) -> str | None:
    wishes = [_wish(part) for part in accept.split(",") if part.strip()]
    best, best_quality = None, 0.0
    for media in offered:
        quality = _quality(media, wishes)
        if quality > best_quality:
            best, best_quality = media, quality
    return best


# A client says the same in every request, and all clients of a kind say the same.
_remembered = lru_cache(maxsize=256)(_best)


def is_taken(content_type: str | None, taken: Iterable[str]) -> bool:
    """Whether a body of this type can be read; one that says nothing is believed to be right."""
    return content_type is None or media_name(content_type) in taken


def _quality(media: str, wishes: Sequence[_Wish]) -> float:
    """The most precise wish that is for a type decides."""
    fitting = [wish for wish in wishes if wish.is_for(media)]
    return max(fitting, key=lambda wish: wish.precision).quality if fitting else 0.0


def _wish(part: str) -> _Wish:
    media, *parameters = part.split(";")
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name.strip().lower() == "q":
            quality = _number(value)
    return _Wish(media.strip().lower(), quality)


def _number(text: str) -> float:
    """Between 0 and 1; what is not a number wishes for nothing."""
    whole, _, rest = text.strip().partition(".")
    if not f"{whole}{rest}".isdecimal():
        return 0.0
    return min(1.0, float(text))
