"""Subscription patterns: RE2's syntax and RE2's machine, in the words of Apache Kafka.

A pattern comes from a client and is run over every topic of the cluster in the one thread that
serves everybody, so no pattern may take long. RE2 reads a name once, whatever the pattern; what
a pattern may cost beyond that, in memory and over many names, is bounded here.
"""

from collections.abc import Iterable
from time import thread_time
from typing import Any, Final

import re2

from penstock.errors import InvalidRegularExpression

LENGTH_MAX: Final = 10_000
PROGRAM_MAX: Final = 10_000  # RE2's instructions; each may be looked at for each character.
MEMORY_BYTES_MAX: Final = 4 << 20  # Of one machine. It also bounds the time to build it, 50 ms.
EFFORT_S_MAX: Final = 0.3  # Of the processor, for all names, beyond:
_NAME_S: Final = 10e-6  # What a name costs with a harmless pattern.

# Apache Kafka takes the words of RE2/J. RE2 has the others of its words in common with it.
_WORDS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "pattern too large - compile failed": "expression is too large",
    "trailing \\": "trailing backslash at end of expression",
}


class TopicPattern:
    """A valid pattern; `select` asks it about whole names.

    Only the text is kept. RE2's own cache holds the machines of the patterns used last, so all
    shards share them and many patterns do not take more and more memory.
    """

    def __init__(self, text: str) -> None:
        """Raises InvalidRegularExpression in the words of Apache Kafka."""
        self.text = text
        self._machine()

    def select(self, names: Iterable[str]) -> frozenset[str]:
        """The names that match; raises InvalidRegularExpression when that takes too long."""
        machine = self._machine()
        ends_s = thread_time() + EFFORT_S_MAX
        selected = []
        for name in names:
            if machine.fullmatch(name.encode()) is not None:
                selected.append(name)
            ends_s += _NAME_S
            if thread_time() > ends_s:
                raise _invalid(self.text, "it takes too long to match")
        return frozenset(selected)

    def _machine(self) -> Any:
        if len(self.text) > LENGTH_MAX:
            raise _invalid(self.text, "expression is too large")
        try:
            machine = re2.compile(self.text.encode(errors="surrogatepass"), _OPTIONS)
        except re2.error as error:
            words = error.args[0].decode().partition(": ")[0]
            raise _invalid(self.text, _WORDS.get(words, words)) from None
        if machine.programsize > PROGRAM_MAX:
            raise _invalid(self.text, "expression is too large")
        return machine


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MEMORY_BYTES_MAX
    options.never_capture = True  # Groups would cost a slower machine, and nobody asks for them.
    options.log_errors = False
    return options


_OPTIONS: Final = _options()


def _invalid(text: str, reason: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(
        f"SubscribedTopicRegex `{text}` is not a valid regular expression: {reason}."
    )
