"""penstock schema: what a registry has, what it would take, and schemas from one to another."""

import argparse
import difflib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from penstock.cli.parser import ToolParser
from penstock.errors import CommandError

if TYPE_CHECKING:  # The tool that runs imports the client; a parser alone must stay cheap.
    from penstock.schemas.registry_client import RegistryClient

KINDS = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
REGISTRY = "http://127.0.0.1:8081"
_SHAPES = {
    "register": "SUBJECT FILE",
    "show": "SUBJECT or --id NUMBER",
    "list": "[SUBJECT]",
    "diff": "SUBJECT [FILE]",
    "check": "SUBJECT FILE",
    "delete": "SUBJECT",
    "import": "FILE",
    "export": "[FILE]",
}
# How many words may follow an action, and to which actions an option belongs.
_WORDS = {
    "register": (2, 2),
    "show": (0, 1),
    "list": (0, 1),
    "diff": (1, 2),
    "check": (2, 2),
    "delete": (1, 1),
    "import": (1, 1),
    "export": (0, 1),
}
_OPTIONS = {
    "type": ("register", "check"),
    "reference": ("register", "check"),
    "normalize": ("register", "check"),
    "schema_version": ("show", "diff", "check", "delete"),
    "with_version": ("diff",),
    "id": ("show",),
    "raw": ("show",),
    "deleted": ("list", "export"),
    "prefix": ("list", "export"),
    "permanent": ("delete",),
    "force": ("import",),
}


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    _check(parser, options)
    from penstock.schemas.registry_client import RegistryClient, RegistryRefused

    user = options.user or os.environ.get("SCHEMA_REGISTRY_USER")
    client = RegistryClient(options.registry, basic_auth=user, timeout_s=options.timeout)
    try:
        return _ACTIONS[options.action](client, options)
    except RegistryRefused as refused:
        raise CommandError(refused.message) from refused  # In the registry's own words.


def register(client: "RegistryClient", options: argparse.Namespace) -> int:
    """Register a file's schema; its id is printed."""
    subject, file = options.words
    flag = "?normalize=true" if options.normalize else ""
    made = client.ask("POST", f"{_of(subject)}/versions{flag}", _request(options, file))
    print(made["id"])
    return 0


def show(client: "RegistryClient", options: argparse.Namespace) -> int:
    """One schema, with what belongs to it or as its bare text."""
    if options.id is not None:
        found = client.ask("GET", f"/schemas/ids/{options.id}")
    else:
        found = _find(client, options.words[0], options.schema_version or "latest")
    if options.raw:
        print(found["schema"])
        return 0
    for name in ("subject", "version", "id", "guid", "schemaType", "references", "metadata"):
        if found.get(name):
            value = found[name]
            print(f"{name}: {value if isinstance(value, str | int) else json.dumps(value)}")
    if found.get("ruleSet"):
        print(f"ruleSet: {json.dumps(found['ruleSet'])}")
    print(pretty(found))
    return 0


def print_list(client: "RegistryClient", options: argparse.Namespace) -> int:
    """The subjects, or the versions of one."""
    asked = {"deleted": "true"} if options.deleted else {}
    if options.words:
        path = f"{_of(options.words[0])}/versions"
    else:
        path = "/subjects"
        if options.prefix:
            asked["subjectPrefix"] = options.prefix
    for one in client.ask("GET", f"{path}?{urlencode(asked)}" if asked else path):
        print(one)
    return 0


def diff(client: "RegistryClient", options: argparse.Namespace) -> int:
    """What changed between two versions, or would change with a file."""
    subject, *files = options.words
    if files:
        older = _find(client, subject, options.schema_version or "latest")
        newer = {"schema": _read(files[0]), "schemaType": older.get("schemaType", "AVRO")}
        named = files[0]
    else:
        older, newer = _two_versions(client, subject, options)
        named = f"{subject} version {newer['version']}"
    lines = difflib.unified_diff(
        pretty(older).splitlines(),
        pretty(newer).splitlines(),
        f"{subject} version {older['version']}",
        named,
        lineterm="",
    )
    print("\n".join(lines) or "They are the same.")
    return 0


def check(client: "RegistryClient", options: argparse.Namespace) -> int:
    """Whether a file's schema could be registered; 1 if not, with the reasons."""
    subject, file = options.words
    asked = {"verbose": "true"} | ({"normalize": "true"} if options.normalize else {})
    version = f"/{quote(options.schema_version, safe='')}" if options.schema_version else ""
    path = f"/compatibility{_of(subject)}/versions{version}?{urlencode(asked)}"
    verdict = client.ask("POST", path, _request(options, file))
    if verdict["is_compatible"]:
        print("It is compatible.")
        return 0
    print(f"It is not compatible with {subject}:", file=sys.stderr)
    for message in verdict.get("messages") or ():
        print(f"  {message}", file=sys.stderr)
    return 1


def delete(client: "RegistryClient", options: argparse.Namespace) -> int:
    """Delete a subject or one version of it; the versions that are gone are printed."""
    version = (
        f"/versions/{quote(options.schema_version, safe='')}" if options.schema_version else ""
    )
    flag = "?permanent=true" if options.permanent else ""
    gone = client.ask("DELETE", f"{_of(options.words[0])}{version}{flag}")
    for one in gone if isinstance(gone, list) else [gone]:
        print(one)
    return 0


def export(client: "RegistryClient", options: argparse.Namespace) -> int:
    """All schemas with their ids, to a file or to the output."""
    from penstock.cli.tools.schema.moving import export_lines

    lines = export_lines(client, prefix=options.prefix or ":*:", deleted=options.deleted)
    if not options.words:
        for line in lines:
            print(line)
        return 0
    count = 0
    with Path(options.words[0]).open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
    print(f"{count} lines written to {options.words[0]}.", file=sys.stderr)
    return 0


def import_file(client: "RegistryClient", options: argparse.Namespace) -> int:
    """Schemas of an export, under the ids and versions they had."""
    from penstock.cli.tools.schema.moving import import_lines

    lines = _read(options.words[0]).splitlines()
    done = import_lines(client, lines, force=options.force)
    print(f"{done} schemas imported.")
    return 0


def pretty(found: Mapping[str, Any]) -> str:
    """A schema's text for people: JSON indented, Protobuf as it is."""
    text = str(found["schema"])
    if found.get("schemaType") == "PROTOBUF":
        return text.rstrip("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _request(options: argparse.Namespace, file: str) -> dict[str, Any]:
    kind = options.type or KINDS.get(Path(file).suffix.lower())
    if kind is None:
        raise CommandError(
            f"The name of {file} does not tell its language: write --type AVRO, JSON or PROTOBUF."
        )
    request: dict[str, Any] = {"schema": _read(file), "schemaType": kind.upper()}
    references = [_reference(text) for text in options.reference]
    return request | ({"references": references} if references else {})


def _reference(text: str) -> dict[str, Any]:
    name, equals, target = text.partition("=")
    subject, colon, version = target.rpartition(":")
    if not equals or not colon or not name or not subject or not version.lstrip("-").isdecimal():
        raise CommandError(f"--reference {text} is not of the form NAME=SUBJECT:VERSION.")
    return {"name": name, "subject": subject, "version": int(version)}


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError(f"{file} is not text in UTF-8.") from error


def _two_versions(
    client: "RegistryClient", subject: str, options: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two to compare; by default the last and the one before it."""
    numbers: list[int] = client.ask("GET", f"{_of(subject)}/versions")
    after = int(options.with_version or numbers[-1])
    earlier = [one for one in numbers if one < after]
    if not options.schema_version and not earlier:
        raise CommandError(f"{subject} has no version before {after}.")
    before = options.schema_version or str(earlier[-1])
    return _find(client, subject, before), _find(client, subject, str(after))


def _find(client: "RegistryClient", subject: str, version: str) -> dict[str, Any]:
    path = f"{_of(subject)}/versions/{quote(version, safe='')}"
    found: dict[str, Any] = client.ask("GET", path)
    return found


def _of(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    if options.action not in _SHAPES:
        parser.error(f"Say what to do: penstock schema {'|'.join(_SHAPES)}")
    shape = f"penstock schema {options.action} {_SHAPES[options.action]}"
    least, most = _WORDS[options.action]
    if not least <= len(options.words) <= most:
        parser.error(f"Write it as: {shape}")
    if options.action == "show" and bool(options.words) == (options.id is not None):
        parser.error(f"Write it as: {shape}")
    for name, actions in _OPTIONS.items():
        if getattr(options, name) and options.action not in actions:
            belongs = " and ".join(actions)
            parser.error(f"--{name.replace('_', '-')} belongs to `penstock schema {belongs}`")
    version = options.with_version
    if version and not version.isdecimal():
        parser.error(f"--with-version {version} is no number")


def _parser() -> ToolParser:
    parser = ToolParser(
        "penstock schema",
        f"Work with schemas in a registry: penstock schema {'|'.join(_SHAPES)} ...",
    )
    parser.add_argument("action", nargs="?")
    parser.add_argument("words", nargs="*")
    parser.add_argument(
        "--registry", default=REGISTRY, metavar="url", help=f"The registry (default {REGISTRY})."
    )
    parser.add_argument(
        "--user",
        metavar="name:password",
        help="Who asks; also file:/path, env:NAME, or the variable SCHEMA_REGISTRY_USER.",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="seconds",
        help="How long an answer may take.",
    )
    parser.add_argument(
        "--type",
        type=str.upper,
        choices=sorted(KINDS.values()),
        help="The schema's language, where the file's name does not end in .avsc, .json or .proto.",
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME=SUBJECT:VERSION",
        help="What the schema refers to. May be given many times.",
    )
    parser.add_argument("--schema-version", metavar="number", help="A version, or latest.")
    parser.add_argument("--with-version", metavar="number", help="diff: the newer version.")
    parser.add_argument("--id", type=int, metavar="number", help="show: the schema of this id.")
    parser.add_argument("--prefix", metavar="text", help="Only subjects that begin so.")
    parser.flag("normalize", "Bring the schema into its normal form first.")
    parser.flag("raw", "show: the schema's text alone.")
    parser.flag("deleted", "Also what is softly deleted.")
    parser.flag("permanent", "delete: for good; it must be softly deleted before.")
    parser.flag("force", "import: also into subjects that have schemas.")
    return parser


_ACTIONS: dict[str, Callable[["RegistryClient", argparse.Namespace], int]] = {
    "register": register,
    "show": show,
    "list": print_list,
    "diff": diff,
    "check": check,
    "delete": delete,
    "import": import_file,
    "export": export,
}
