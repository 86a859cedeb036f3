"""The command line of kafka-configs as a failure shows it: without the secrets that are set.

What a tool prints ends up in logs of builds and schedulers, where passwords must not be.
"""

import re
from collections.abc import Sequence
from typing import Final

_OPTION: Final = "add-config"
_HIDDEN: Final = "[hidden]"
# From the name of a secret on: its value may hold commas, brackets and blanks.
_SECRET: Final = re.compile(
    r"((?:^|,)\s*[^,=]*(?:scram-sha|password|secret|jaas\.config|keystore\.key)[^,=]*=).*",
    re.IGNORECASE | re.DOTALL,
)


def shown(argv: Sequence[str]) -> list[str]:
    """The words, with what follows the name of a secret hidden."""
    words: list[str] = []
    is_value = False
    for word in argv:
        name, equals, value = word.partition("=")
        if is_value:
            words.append(_without_secrets(word))
        elif equals and _is_option(name):
            words.append(f"{name}={_without_secrets(value)}")
        else:
            words.append(word)
        is_value = not is_value and _is_option(word)
    return words


def _is_option(word: str) -> bool:
    """Whether it names the option, as far as it must be written out."""
    return word.startswith("-") and len(word) > 1 and _OPTION.startswith(word.lstrip("-"))


def _without_secrets(text: str) -> str:
    return _SECRET.sub(rf"\g<1>{_HIDDEN}", text)
