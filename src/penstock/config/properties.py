"""Java's properties files, read as Java reads them.

`server.properties` has been written for twenty years by people and tools that rely on the corners
of this format: `:` or a space instead of `=`, lines continued with a backslash, `\\u00e9`. What the
keys mean is left to the tables.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.errors import ConfigError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    """The keys of a file; ConfigError says which file cannot be read and why."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot read the properties file {path}: {reason}") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # What Java took these files to be before version 9.
    try:
        return parse_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values; of a key given twice the later value stands, as in Java."""
    return dict(_split(line) for line in _logical_lines(text))


def format_properties(values: Mapping[str, str]) -> str:
    """A text that reads back as these values."""
    return "".join(f"{_quoted(k, key=True)}={_quoted(v, key=False)}\n" for k, v in values.items())


def _natural_lines(text: str) -> Iterator[str]:
    # Not splitlines(), which also breaks at form feeds and at separators Java keeps.
    yield from text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _logical_lines(text: str) -> Iterator[str]:
    """Lines with their continuations joined; comments and empty lines left out."""
    joined: str | None = None
    for line in _natural_lines(text):
        stripped = line.lstrip(_BLANK)
        if joined is None and (not stripped or stripped[0] in "#!"):
            continue
        joined = (joined or "") + stripped
        if _continues(stripped):
            joined = joined[:-1]
            continue
        if joined:
            yield joined
        joined = None
    if joined:
        yield joined


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """The key ends at the first bare `=`, `:` or blank; one separator may follow blanks."""
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANK:
        at += 2 if line[at] == "\\" else 1
    rest = line[at:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return _unescaped(line[:at]), _unescaped(rest)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter != "\\":
            out.append(letter)
            at += 1
        elif text[at + 1 : at + 2] == "u":
            out.append(_code_unit(text[at + 2 : at + 6]))
            at += 6
        else:
            out.append(_ESCAPES.get(text[at + 1 : at + 2], text[at + 1 : at + 2]))
            at += 2
    return _paired("".join(out))


def _code_unit(digits: str) -> str:
    if len(digits) == 4 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
        return chr(int(digits, 16))
    raise ConfigError(f"\\u{digits} is not a character: write \\u and four hexadecimal digits")


def _paired(text: str) -> str:
    """Two escapes may be the halves of one character beyond the first plane."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quoted(text: str, *, key: bool) -> str:
    names = {value: f"\\{name}" for name, value in _ESCAPES.items()}
    out: list[str] = []
    for at, letter in enumerate(text):
        if letter in names:
            out.append(names[letter])
        elif letter == "\\" or (key and letter in "=:#! ") or (letter == " " and at == 0):
            out.append(f"\\{letter}")
        elif " " <= letter <= "~":
            out.append(letter)
        else:
            units = letter.encode("utf-16-be", "surrogatepass")
            pairs = (units[i : i + 2].hex() for i in range(0, len(units), 2))
            out.extend(f"\\u{pair}" for pair in pairs)
    return "".join(out)
