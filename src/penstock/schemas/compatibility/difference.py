"""One way in which a reader's schema does not fit a writer's, in the words of a registry.

The rules see a reader and a writer. Which of the two is the new schema depends on the level asked
for, so a sentence has two gaps: the first is for the reader, the second for the writer.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a reader would stumble over."""

    kind: str
    path: str
    sentence: (
        str  # Holds {0} for the reader's schema and {1} for the writer's; empty: kind says it.
    )
    detail: str | None = None  # Avro alone tells more than the sentence.

    def text(self, reader: str, writer: str) -> str:
        """As a registry prints it; `reader` and `writer` are `new` and `old`, or the reverse."""
        sentence = _filled(self.sentence, reader, writer)
        if self.detail is None:
            return f'{{errorType:"{self.kind}", description:"{sentence}"}}'
        return (
            f"{{errorType:'{self.kind}', description:'{sentence}', additionalInfo:'{self.detail}'}}"
        )


def _filled(sentence: str, reader: str, writer: str) -> str:
    """Fills the gaps by place; paths may hold braces of their own."""
    first, _, rest = sentence.partition("{0}")
    second, gap, end = rest.partition("{1}")
    return f"{first}{reader}{second}{writer}{end}" if gap else sentence
