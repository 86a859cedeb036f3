"""Schemas out of one registry and into another, with the ids that messages know them by.

An export is a line of JSON for each version, those that others refer to first, and one for the
settings of each subject. An import puts each subject into IMPORT mode for as long as it takes.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from penstock.errors import CommandError

if TYPE_CHECKING:
    from penstock.schemas.registry_client import RegistryClient

_SENT = ("schema", "schemaType", "references", "metadata", "ruleSet", "id", "version")
_PAGE = 1000


def export_lines(client: "RegistryClient", *, prefix: str, deleted: bool) -> Iterator[str]:
    """The lines of an export."""
    versions = sorted(
        _versions(client, prefix, deleted), key=lambda one: (one["id"], one["version"])
    )
    for one in in_order(versions):
        yield json.dumps(one, ensure_ascii=False)
    for subject in sorted({one["subject"] for one in versions}):
        config = _config(client, subject)
        if config is not None:
            yield json.dumps({"subject": subject, "config": config}, ensure_ascii=False)


def in_order(versions: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each version after those that it refers to; a ring of references is told as it is."""
    known = {(one["subject"], one["version"]): one for one in versions}
    told: set[tuple[str, int]] = set()
    for first in versions:
        waiting = [first]
        while waiting:
            one = waiting[-1]
            at = (one["subject"], one["version"])
            told_before = at in told
            told.add(at)
            wanted = [(r["subject"], r["version"]) for r in one.get("references") or ()]
            open_ = [known[r] for r in wanted if r in known and r not in told]
            if open_ and not told_before:
                waiting += open_
                continue
            waiting.pop()
            if known.pop(at, None) is not None:
                yield one


def import_lines(client: "RegistryClient", lines: Sequence[str], *, force: bool) -> int:
    """Take an export in; how many versions it had."""
    entries = [_entry(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    versions = [one for one in entries if "schema" in one]
    subjects = sorted({one["subject"] for one in versions})
    opened: list[str] = []
    try:
        for subject in subjects:
            flag = "?force=true" if force else ""
            client.ask("PUT", f"/mode/{quote(subject, safe='')}{flag}", {"mode": "IMPORT"})
            opened.append(subject)
        for one in versions:
            _register(client, one)
    finally:
        for subject in opened:
            client.ask("DELETE", f"/mode/{quote(subject, safe='')}")
    for one in versions:
        if one.get("deleted"):
            path = f"/subjects/{quote(one['subject'], safe='')}/versions/{one['version']}"
            client.ask("DELETE", path)
    for one in entries:
        if "config" in one:
            client.ask("PUT", f"/config/{quote(one['subject'], safe='')}", one["config"])
    return len(versions)


def _register(client: "RegistryClient", one: dict[str, Any]) -> None:
    body = {name: one[name] for name in _SENT if one.get(name) is not None}
    client.ask("POST", f"/subjects/{quote(one['subject'], safe='')}/versions", body)


def _versions(client: "RegistryClient", prefix: str, deleted: bool) -> Iterator[dict[str, Any]]:
    asked = {"subjectPrefix": prefix, "deleted": str(deleted).lower(), "limit": _PAGE}
    offset = 0
    while True:
        page = client.ask("GET", f"/schemas?{urlencode({**asked, 'offset': offset})}")
        yield from page
        if len(page) < _PAGE:
            return
        offset += len(page)


def _config(client: "RegistryClient", subject: str) -> dict[str, Any] | None:
    from penstock.schemas.registry_client import RegistryRefused

    with suppress(RegistryRefused):
        found: dict[str, Any] = client.ask("GET", f"/config/{quote(subject, safe='')}")
        return found
    return None


def _entry(number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"Line {number} is not JSON: {error}.") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("subject"), str):
        raise CommandError(f"Line {number} names no subject.")
    if "config" not in entry and not {"schema", "id", "version"} <= entry.keys():
        raise CommandError(f"Line {number} has no schema with an id and a version.")
    return entry
