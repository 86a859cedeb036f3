"""Command lines as Kafka's tools take them, and the help they print.

Kafka's parser takes `--topic`, an unambiguous beginning of it and, as old texts write it, `-topic`;
on a mistake it prints one sentence and the table of options and ends with code 1. Without a word it
tells what the tool is for. argparse does the parsing; this makes it look like Kafka.
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
_ARGPARSE_MISSING = "the following arguments are required: "


class ToolParser(argparse.ArgumentParser):
    """The options of one tool; every one may be written with one dash or two."""

    missing = 'Missing required argument "[{}]"'  # Kafka's tools differ in this sentence.

    def __init__(self, prog: str, purpose: str) -> None:
        super().__init__(prog=prog, description=purpose, add_help=False)
        self.told_when_bare = purpose  # Instead of what is missing: all of it is. "": say it.
        self._given: set[str] = set()
        self._is_bare = False
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)
        self.add_argument("--help", action=_PrintHelp, nargs=0, help="Print usage information.")
        self.add_argument("--version", action=_PrintVersion, nargs=0, help="Display the version.")

    def flag(self, name: str, text: str) -> None:
        """An option without a value."""
        self.add_argument(f"--{name}", action="store_true", help=text)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The options of a command line; a mistake is told and ends the process with code 1."""
        self._given.clear()
        self._is_bare = not argv
        known, rest = self.parse_known_args([self._two_dashes(word) for word in argv])
        if rest:
            self.error(f"{rest[0].lstrip('-')} is not a recognized option")
        return known

    def required(self, options: argparse.Namespace, *names: str) -> None:
        """Refuse a command line that lacks one of these options."""
        missing = [name for name in names if getattr(options, name.replace("-", "_")) is None]
        if missing:
            self.error(self.missing.format(missing[0]))

    def note_given(self, name: str) -> None:
        """An option with one value was met; refuse it when it comes again."""
        if name in self._given:
            self.error(f"Found multiple arguments for option {name}, but you asked for only one")
        self._given.add(name)

    def error(self, message: str) -> NoReturn:
        if message.startswith(_ARGPARSE_MISSING):
            words = message.removeprefix(_ARGPARSE_MISSING).split(", ")
            message = self.missing.format(words[0].lstrip("-"))
        self._refuse((self.told_when_bare if self._is_bare else "") or message)

    def _refuse(self, sentence: str) -> NoReturn:
        print(sentence, file=sys.stderr)
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

    # What argparse refuses in words of its own, refused in those of Kafka's parser.

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            if not action.option_strings:
                raise
            self.error(f"Option {_name(action)} requires an argument")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            self.error(f"Cannot parse argument '{arg_string}' of option {_name(action)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = ", ".join(str(choice) for choice in action.choices)
            if not action.option_strings:
                self.error(f"'{value}' is not one of {known}")
            self.error(f"Cannot parse argument '{value}' of option {_name(action)}: write {known}")

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        found = super()._get_option_tuples(option_string)
        return found if len(found) == 1 else []  # A beginning of several options names none.

    def _two_dashes(self, word: str) -> str:
        name = word.partition("=")[0]
        if not name.startswith("--") and f"-{name}" in self._option_string_actions:
            word, name = f"-{word}", f"-{name}"
        action = self._option_string_actions.get(name)
        # A value of an option that takes none is passed over, as Kafka's parser does.
        return name if action is not None and action.nargs == 0 else word


class _StoreOnce(argparse.Action):
    """An option with one value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None and isinstance(parser, ToolParser):
            parser.note_given(option_string.lstrip("-"))
        setattr(namespace, self.dest, values)


class _PrintHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(parser.format_help(), end="")
        raise SystemExit(0)


class _PrintVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from penstock import __version__

        print(__version__)
        raise SystemExit(0)


def _name(action: argparse.Action) -> str:
    return action.option_strings[0].lstrip("-") if action.option_strings else action.dest


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
