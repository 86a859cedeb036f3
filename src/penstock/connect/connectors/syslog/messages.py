"""One syslog message read: RFC 5424, RFC 3164, or as it is where it is neither.

Nothing that comes is refused: what cannot be read is a message of type UNKNOWN with all its text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

_PRIORITY = re.compile(r"<(\d{1,3})>")
_PRIORITY_MAX = 191
_HEAD_5424 = re.compile(r"(\d{1,2}) (\S+) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) ?")
_HEAD_3164 = re.compile(r"([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\S+) ")
_TAG = re.compile(r"([A-Za-z0-9_./-]{1,48})(?:\[([^\]]{1,64})\])?: ?")
_ELEMENT = re.compile(
    r'\[([^\s="\]]{1,32})((?: [^\s="\]]{1,32}="(?:[^"\\\]]|\\.)*")*)\]', re.DOTALL
)
_PARAMETER = re.compile(r' ([^\s="\]]{1,32})="((?:[^"\\\]]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\\]])')
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_MARK = "\ufeff"  # Some put it before a text to say that it is UTF-8.


@dataclass(frozen=True, slots=True, kw_only=True)
class SyslogMessage:
    """What a message says; None: it does not say it."""

    type: str  # RFC5424, RFC3164 or UNKNOWN.
    message: str
    facility: int | None = None
    level: int | None = None
    version: int | None = None
    date: datetime | None = None
    host: str | None = None
    app_name: str | None = None
    process_id: str | None = None
    message_id: str | None = None
    structured_data: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def read_message(text: str, now: datetime) -> SyslogMessage:
    """A message; `now` tells the year, which RFC 3164 leaves out."""
    found = _PRIORITY.match(text)
    if found is None or int(found[1]) > _PRIORITY_MAX:
        return SyslogMessage(type="UNKNOWN", message=text)
    facility, level = divmod(int(found[1]), 8)
    rest = text[found.end() :]
    read = _read_5424(rest, facility, level) or _read_3164(rest, facility, level, now)
    return read or SyslogMessage(type="UNKNOWN", message=rest, facility=facility, level=level)


def _read_5424(text: str, facility: int, level: int) -> SyslogMessage | None:
    head = _HEAD_5424.match(text)
    if head is None:
        return None
    data = _structured(text[head.end() :])
    if data is None:
        return None
    elements, message = data
    return SyslogMessage(
        type="RFC5424",
        facility=facility,
        level=level,
        version=int(head[1]),
        date=_instant(head[2]),
        host=_given(head[3]),
        app_name=_given(head[4]),
        process_id=_given(head[5]),
        message_id=_given(head[6]),
        structured_data=elements,
        message=message.removeprefix(_MARK),
    )


def _structured(text: str) -> tuple[dict[str, dict[str, str]], str] | None:
    """The elements, and the message behind them; None: this is not how they are written."""
    if text == "-" or text.startswith("- "):
        return {}, text[2:]
    elements: dict[str, dict[str, str]] = {}
    at = 0
    while (found := _ELEMENT.match(text, at)) is not None:
        elements[found[1]] = {
            name: _ESCAPED.sub(r"\1", value) for name, value in _PARAMETER.findall(found[2])
        }
        at = found.end()
    is_end = at == len(text) or text[at] == " "
    return (elements, text[at + 1 :]) if elements and is_end else None


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _given(word: str) -> str | None:
    return None if word == "-" else word


def _read_3164(text: str, facility: int, level: int, now: datetime) -> SyslogMessage | None:
    head = _HEAD_3164.match(text)
    date = None if head is None else _dated(head, now)
    if head is None or date is None:
        return None
    rest = text[head.end() :]
    tag = _TAG.match(rest)
    return SyslogMessage(
        type="RFC3164",
        facility=facility,
        level=level,
        date=date,
        host=head[6],
        app_name=tag[1] if tag else None,
        process_id=tag[2] if tag else None,
        message=rest[tag.end() :] if tag else rest,
    )


def _dated(head: re.Match[str], now: datetime) -> datetime | None:
    """The year is this one, unless that is more than a day ahead: a message of December."""
    if head[1] not in _MONTHS:
        return None
    month, day = _MONTHS.index(head[1]) + 1, int(head[2])
    for year in (now.year, now.year - 1):
        try:
            found = datetime(year, month, day, int(head[3]), int(head[4]), int(head[5]), tzinfo=UTC)
        except ValueError:
            continue  # A 29 February, in a year that has none.
        if found <= now + timedelta(days=1):
            return found
    return None
