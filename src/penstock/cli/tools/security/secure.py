"""penstock secure init: keys, users and settings of a secured cluster, in one command."""

import datetime
import secrets
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.cli.secure_files import ADMIN, SecureFiles, make_secure_files

DIRECTORY = "penstock-secure"
_USAGE = (
    "penstock secure init [DIR] [--users alice,bob] [--hosts broker1.example.org,10.0.0.7]\n"
    "Make a small certificate authority, keys for brokers and ZooKeeper, users with passwords, and "
    "the settings that name them. `penstock cluster up --secure DIR` uses them."
)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PASSWORD_BYTES = 18
_DAYS = 825


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.days < 1 or options.days > 36_500:
        parser.error("--days: write a number from 1 to 36500")
    here = socket.gethostname()
    hosts = dict.fromkeys([*_LOOPBACK, here, *_words(options.hosts)])
    files = make_secure_files(
        Path(options.dir),
        users=_words(options.users),
        hosts=[host for host in hosts if host],
        now=datetime.datetime.now(datetime.UTC),
        days=options.days,
        new_password=lambda: secrets.token_urlsafe(_PASSWORD_BYTES),
    )
    for line in _told(options.dir, files, _words(options.users)):
        print(line)
    return 0


def _told(shown: str, files: SecureFiles, users: Sequence[str]) -> Iterator[str]:
    """What is where, and what to do next."""
    rows = [
        ("ca.pem, ca.key", "the authority; keep its key to yourself"),
        (files.broker_properties.name, "what brokers say, with broker.pem"),
        (files.zookeeper_properties.name, "what ZooKeeper says, with zookeeper.pem"),
        *((files.client(user).name, f"for clients of {user}") for user in (ADMIN, *users)),
    ]
    yield f"Keys, users and settings are in {shown}; only you may read them."
    for name, what in rows:
        yield f"    {name:<24}{what}"
    yield "Clients of librdkafka take NAME.librdkafka.properties. Next:"
    yield f"    penstock cluster up --secure {shown}"


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _parser() -> ToolParser:
    parser = ToolParser("penstock secure", _USAGE)
    parser.add_argument("action", choices=["init"])
    parser.add_argument("dir", nargs="?", default=DIRECTORY)
    parser.add_argument(
        "--users", metavar="names", help="Users beside admin, with commas between. (default: none)"
    )
    parser.add_argument(
        "--hosts",
        metavar="names",
        help="Names and addresses of the brokers' machines, beside this one's and localhost.",
    )
    parser.add_argument(
        "--days",
        type=int,
        default=_DAYS,
        metavar="n",
        help=f"How long the certificates are valid. (default: {_DAYS})",
    )
    return parser
