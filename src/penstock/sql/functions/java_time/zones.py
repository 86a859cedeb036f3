"""Time zones by the names that Java takes, and offsets as patterns write them."""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_SHORT: Final = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CDT": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "EDT": "America/New_York",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MDT": "America/Denver", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PDT": "America/Los_Angeles", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


@lru_cache(1024)
def zone_of(name: str) -> tzinfo:
    """The zone; raises ValueError."""
    if name in ("UTC", "GMT", "UT", "Z"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        return timezone(_span(found))
    if not re.fullmatch(r"[A-Za-z0-9_+\-/]{1,60}", name):
        raise ValueError(f"Invalid time zone: {name[:60]}")
    try:
        return ZoneInfo(_SHORT.get(name, name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"Unknown time-zone ID: {name}") from None


def _span(found: re.Match[str]) -> timedelta:
    sign, hours, minutes, seconds = found.groups()
    span = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if span > timedelta(hours=18):
        raise ValueError(f"Zone offset not in valid range: {found[0]}")
    return -span if sign == "-" else span


def offset_text(offset: timedelta, letter: str, count: int) -> str:
    """An offset as X, x, Z or O write it."""
    if letter == "O":
        return _localized(offset, count)
    if letter == "Z":
        if count == 4:
            return _localized(offset, 4)
        letter, count = ("X", 5) if count == 5 else ("x", 2)
    if not offset and letter == "X":
        return "Z"
    sign, hours, minutes, seconds = _pieces(offset)
    colon = ":" if count in (3, 5) else ""
    text = f"{sign}{hours:02d}"
    if count > 1 or minutes:
        text += f"{colon}{minutes:02d}"
    return f"{text}{colon}{seconds:02d}" if seconds and count > 3 else text


def _localized(offset: timedelta, count: int) -> str:
    sign, hours, minutes, _ = _pieces(offset)
    if not offset:
        return "GMT"
    if count == 4:
        return f"GMT{sign}{hours:02d}:{minutes:02d}"
    return f"GMT{sign}{hours}" + (f":{minutes:02d}" if minutes else "")


def _pieces(offset: timedelta) -> tuple[str, int, int, int]:
    total = int(abs(offset).total_seconds())
    return "-" if offset < timedelta() else "+", total // 3600, total // 60 % 60, total % 60
