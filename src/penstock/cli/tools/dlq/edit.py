"""A dead letter in its corrected form.

A topic cannot be changed, so the new form is another letter behind the others, with the same cause
and a header that names the one it replaces; the old one counts as redriven from then on.
"""

import argparse
import json
from pathlib import Path

from penstock.cli.tools.dlq.documents import LetterDocuments
from penstock.cli.tools.dlq.replay import Record, Returned
from penstock.errors import CommandError, PenstockError
from penstock.schemas.dead_letters import CONNECT, EDITED, OURS, Cause, Header, own_headers


def corrected(
    record: Record,
    cause: Cause,
    since: int,
    options: argparse.Namespace,
    documents: LetterDocuments | None,
) -> Returned:
    """The letter with what the options change."""
    place = f"{record.topic}-{record.partition}@{record.offset}"
    reason = [one for one in record.headers if one[0].startswith((CONNECT, OURS))]
    kept = [one for one in reason if one[0] != EDITED]
    return Returned(
        letter=record,
        since=since,
        topic=record.topic,
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
        key=record.key if options.key is None else options.key.encode(),
        value=_value(record.value, options, documents),
        headers=(*_headers(own_headers(record.headers), options), *kept, (EDITED, place.encode())),
    )


def _value(
    before: bytes | None, options: argparse.Namespace, documents: LetterDocuments | None
) -> bytes | None:
    if options.null_value:
        return None
    if options.value is not None:
        return bytes(options.value.encode())
    if options.value_file is not None:
        try:
            return Path(options.value_file).read_bytes()
        except OSError as error:
            raise CommandError(f"{options.value_file} cannot be read: {error.strerror}") from error
    if options.value_json is None:
        return before
    assert documents is not None
    try:
        return documents.encode(json.loads(options.value_json), options.schema_id, before)
    except ValueError as error:
        raise CommandError(f"--value-json is not JSON: {error}") from error
    except PenstockError as error:
        raise CommandError(f"The value cannot be written: {error}") from error


def _headers(own: list[Header], options: argparse.Namespace) -> list[Header]:
    """Those that are kept, then those that are set."""
    new: list[Header] = []
    for word in options.header or ():
        name, mark, text = word.partition("=")
        if not name or not mark:
            raise CommandError(f"--header {word} is not name=text.")
        if name.startswith((CONNECT, OURS)):
            raise CommandError(f"The header {name} tells of the letter's cause and stays.")
        new.append((name, text.encode()))
    gone = {*(options.drop_header or ()), *(name for name, _ in new)}
    return [*(one for one in own if one[0] not in gone), *new]
