"""The parts of a URL, and what is escaped in it. A text that is no URL has no parts: NULL."""

import re
from typing import Final
from urllib.parse import SplitResult, quote_plus, unquote, unquote_plus, urlsplit

from penstock.sql.functions.catalogue import Catalogue

catalogue = Catalogue("URL")
# What a URI must not hold unescaped, and percent signs that escape nothing (RFC 2396).
_ILLEGAL: Final = re.compile(r"""[\x00-\x20<>"{}|\\^`]|%(?![0-9A-Fa-f]{2})""")


def _split(url: str) -> SplitResult | None:
    if _ILLEGAL.search(url):
        return None
    try:
        found = urlsplit(url)
        _ = found.port  # Raises if it is no number.
    except ValueError:
        return None
    return found


@catalogue.scalar(
    "URL_ENCODE_PARAM", "(STRING) -> STRING", about="The text as a parameter of a URL."
)
def encode_param(text: str) -> str:
    return quote_plus(text, safe="*-._").replace("~", "%7E")


@catalogue.scalar(
    "URL_DECODE_PARAM", "(STRING) -> STRING", about="What a parameter of a URL stands for."
)
def decode_param(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(f"illegal hex characters in escape pattern: {text[:80]}")
    return unquote_plus(text)


@catalogue.scalar("URL_EXTRACT_FRAGMENT", "(STRING) -> STRING", about="What follows the #.")
def fragment(url: str) -> str | None:
    found = _split(url)
    return None if found is None or "#" not in url else unquote(found.fragment)


@catalogue.scalar("URL_EXTRACT_HOST", "(STRING) -> STRING", about="The name of the host.")
def host(url: str) -> str | None:
    found = _split(url)
    if found is None or not found.netloc:
        return None
    name = found.netloc.rpartition("@")[2]
    return re.sub(r":\d*$", "", name) or None


@catalogue.scalar("URL_EXTRACT_PATH", "(STRING) -> STRING", about="The path, which may be empty.")
def path(url: str) -> str | None:
    found = _split(url)
    return None if found is None else unquote(found.path)


@catalogue.scalar("URL_EXTRACT_PORT", "(STRING) -> INTEGER", about="The port, if one is given.")
def port(url: str) -> int | None:
    found = _split(url)
    return None if found is None else found.port


@catalogue.scalar("URL_EXTRACT_PROTOCOL", "(STRING) -> STRING", about="What stands before the :.")
def protocol(url: str) -> str | None:
    found = _split(url)
    return None if found is None or not found.scheme else found.scheme


@catalogue.scalar("URL_EXTRACT_QUERY", "(STRING) -> STRING", about="What follows the ?, decoded.")
def query(url: str) -> str | None:
    found = _split(url)
    return None if found is None or "?" not in url else unquote(found.query)


@catalogue.scalar(
    "URL_EXTRACT_PARAMETER",
    "(STRING, STRING) -> STRING",
    about="The value of one parameter of the query, decoded; NULL if it has none.",
)
def parameter(url: str, name: str) -> str | None:
    found = _split(url)
    for pair in found.query.split("&") if found else ():
        key, sign, value = pair.partition("=")
        if sign and unquote_plus(key) == name:
            return unquote_plus(value)
    return None
