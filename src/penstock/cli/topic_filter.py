"""Topics chosen by a pattern, as Kafka's tools read `--topic` and `--include`."""

import re

from penstock.errors import CommandError


def topic_pattern(text: str) -> re.Pattern[str]:
    """A regular expression, or several with commas, that must match the whole name."""
    cleaned = re.sub(r"^[\"']+|[\"']+$", "", text.strip().replace(",", "|").replace(" ", ""))
    try:
        return re.compile(f"^({cleaned})$")
    except re.error as error:
        raise CommandError(f"{text} is an invalid regex: {error}.") from error
