"""Command lines as Kafka's tools take them, and the help they print.

Kafka's parser takes `--topic`, an unambiguous beginning of it and, as old texts write it, `-topic`;
on a mistake it prints one sentence and the table of options and ends with code 1. argparse does the
parsing; this makes it look like Kafka.
"""

import argparse
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from penstock.errors import ConfigError

_WIDTH = 80
_LEFT_MAX = 40


class ToolParser(argparse.ArgumentParser):
    """The options of one tool; every one may be written with one dash or two."""

    def __init__(self, prog: str, purpose: str) -> None:
        super().__init__(prog=prog, description=purpose, add_help=False)
        self.add_argument("--help", action=_PrintHelp, nargs=0, help="Print usage information.")
        self.add_argument("--version", action=_PrintVersion, nargs=0, help="Display the version.")

    def flag(self, name: str, text: str) -> None:
        """An option without a value."""
        self.add_argument(f"--{name}", action="store_true", help=text)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The options of a command line; a mistake is told and ends the process with code 1."""
        known, rest = self.parse_known_args([self._two_dashes(word) for word in argv])
        if rest:
            self.error(f"{rest[0].lstrip('-')} is not a recognized option")
        return known

    def required(self, options: argparse.Namespace, *names: str) -> None:
        """Refuse a command line that lacks one of these options."""
        missing = [name for name in names if getattr(options, name.replace("-", "_")) is None]
        if missing:
            self.error(f'Missing required argument "[{missing[0]}]"')

    def error(self, message: str) -> NoReturn:
        print(message, file=sys.stderr)
        print(self.options_table(), file=sys.stderr)
        raise SystemExit(1)

    def format_help(self) -> str:
        return f"{self.description}\n{self.options_table()}\n"

    def options_table(self) -> str:
        """Two columns, as Kafka prints them, in alphabetical order."""
        shown = [a for a in self._actions if a.help is not argparse.SUPPRESS and a.option_strings]
        shown.sort(key=lambda action: action.option_strings[0])
        lefts = [_left_column(action) for action in shown]
        width = min(_LEFT_MAX, max(len(left) for left in lefts)) + 1
        rows = [("Option", "Description"), ("------", "-----------")]
        rows += [(left, str(action.help)) for left, action in zip(lefts, shown, strict=True)]
        return "\n".join(line for left, right in rows for line in _row(left, right, width))

    def _two_dashes(self, word: str) -> str:
        name = word.partition("=")[0]
        if not name.startswith("--") and f"-{name}" in self._option_string_actions:
            return f"-{word}"
        return word


class _PrintHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(parser.format_help(), end="")
        raise SystemExit(0)


class _PrintVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from penstock import __version__

        print(__version__)
        raise SystemExit(0)


def _left_column(action: argparse.Action) -> str:
    name = action.option_strings[0]
    if action.nargs == 0:
        return name
    value = action.metavar if isinstance(action.metavar, str) else "value"
    return f"{name} [{value}]" if action.nargs == "?" else f"{name} <{value}>"


def _row(left: str, right: str, width: int) -> list[str]:
    lefts = textwrap.wrap(left, width - 1, subsequent_indent="  ", break_on_hyphens=False)
    rights: list[str] = []
    for paragraph in right.split("\n"):
        rights += textwrap.wrap(paragraph, _WIDTH - width, subsequent_indent="  ") or [""]
    count = max(len(lefts), len(rights))
    lefts += [""] * (count - len(lefts))
    rights += [""] * (count - len(rights))
    return [f"{a:<{width}}{b}".rstrip() for a, b in zip(lefts, rights, strict=True)]


def warn_deprecated(options: argparse.Namespace, names: Mapping[str, str]) -> None:
    """Say on stderr which option replaces a deprecated one that was given."""
    for old, new in names.items():
        if getattr(options, old.replace("-", "_").replace(".", "_")):
            print(
                f"Option --{old} is deprecated and will be removed in a future version. "
                f"Use --{new} instead.",
                file=sys.stderr,
            )


def key_values(words: Sequence[str], option: str) -> dict[str, str]:
    """`k=v` words as a mapping; a key without a value gets an empty one, as in Kafka."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key.strip() or not equals:
            raise ConfigError(f"{option} {word!r} is not of the form key=value")
        found[key.strip()] = value
    return found


def settings_from(file: str | None, words: Sequence[str] = (), option: str = "") -> dict[str, str]:
    """Settings of a properties file, overridden by `k=v` words."""
    from penstock.config.properties import read_properties

    settings = read_properties(Path(file)) if file else {}
    settings.update(key_values(words, option))
    return settings
