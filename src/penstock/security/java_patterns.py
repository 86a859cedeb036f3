"""Regular expressions written for Java, in the rules of Kafka's settings, carried over to Python.

The two languages agree on nearly all that such rules use. What differs is the replacement: Java
writes `$1` where Python writes `\\g<1>`, and takes as many digits as there are groups for. Named
groups and possessive forms that Python does not know are refused where the setting is read.
"""

import re

from penstock.errors import ConfigError

_NAMED_GROUP = re.compile(r"\(\?<(?=[a-zA-Z])")


def compile_java(setting: str, pattern: str) -> re.Pattern[str]:
    """The pattern; ConfigError names the setting when Python has no such expression."""
    try:
        return re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ConfigError(f"{setting}: the pattern {pattern} cannot be used: {error}") from None


def expand(match: re.Match[str], replacement: str, *, strict: bool = True) -> str:
    """What a match turns into. Not `strict`: `$4` without a fourth group stands for itself."""
    result: list[str] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        if character == "\\" and at + 1 < len(replacement):
            result.append(replacement[at + 1])
            at += 2
        elif character == "$":
            text, at = _group(match, replacement, at + 1, strict=strict)
            result.append(text)
        else:
            result.append(character)
            at += 1
    return "".join(result)


def _group(match: re.Match[str], replacement: str, at: int, *, strict: bool) -> tuple[str, int]:
    """The text of the group named at this place, and where the name ends."""
    if replacement[at : at + 1] == "{":
        end = replacement.find("}", at)
        name = replacement[at + 1 : end]
        if end < 0 or name not in match.re.groupindex:
            raise ConfigError(f"the replacement {replacement} names a group that is not there")
        return match[name] or "", end + 1
    if not _is_digit(replacement[at : at + 1]):
        raise ConfigError(f"the replacement {replacement} has a $ without a group")
    number, end = int(replacement[at]), at + 1
    if number > match.re.groups:
        if strict:
            raise ConfigError(f"the replacement {replacement} names a group that is not there")
        return f"${number}", end
    while _is_digit(replacement[end : end + 1]):
        longer = number * 10 + int(replacement[end])
        if longer > match.re.groups:
            break
        number, end = longer, end + 1
    return match[number] or "", end


def _is_digit(character: str) -> bool:
    return character.isascii() and character.isdigit()
