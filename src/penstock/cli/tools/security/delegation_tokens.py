"""kafka-delegation-tokens: create, renew, end and show delegation tokens."""

import argparse
import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.cli.sentences import told_after
from penstock.client.admin import Admin
from penstock.client.operations.delegation_tokens import DelegationToken
from penstock.errors import CommandError
from penstock.security.principals import Principal

_ROW: Final = "\n{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
_HEADS: Final = (
    *("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS"),
    *("ISSUEDATE", "EXPIRYDATE", "MAXDATE"),
)
# By action: what it must have, and what belongs to others.
_NEEDED: Final[Mapping[str, Sequence[str]]] = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
_FOREIGN: Final[Mapping[str, Sequence[str]]] = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": (
        *("renewer-principal", "max-life-time-period"),
        *("expiry-time-period", "owner-principal"),
    ),
    "expire": ("max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"),
}


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    action = _action(parser, options)
    with admin_of(parser, options) as admin, told_after(""):
        _ACTIONS[action](admin, options)
    return 0


def _create(admin: Admin, options: argparse.Namespace) -> None:
    renewers = _principals(options.renewer_principal)
    owners = _principals(options.owner_principal)
    period_ms = options.max_life_time_period
    print(
        f"Calling create token operation with renewers :{_list_text(renewers)} , "
        f"max-life-time-period :{period_ms}"
    )
    token = admin.create_delegation_token(
        owner=owners[0] if owners else None, renewers=renewers, max_lifetime_ms=period_ms
    )
    print(f"Created delegation token with tokenId : {token.information.token_id}")
    _print_tokens([token])


def _renew(admin: Admin, options: argparse.Namespace) -> None:
    period_ms = options.renew_time_period
    print(
        f"Calling renew token operation with hmac :{options.hmac} , renew-time-period :{period_ms}"
    )
    ends_ms = admin.renew_delegation_token(_hmac(options.hmac), period_ms=period_ms)
    print(f"Completed renew operation. New expiry date : {_date(ends_ms)}")


def _expire(admin: Admin, options: argparse.Namespace) -> None:
    period_ms = options.expiry_time_period
    print(
        f"Calling expire token operation with hmac :{options.hmac} , "
        f"expire-time-period :{period_ms}"
    )
    ends_ms = admin.expire_delegation_token(_hmac(options.hmac), period_ms=period_ms)
    print(f"Completed expire operation. New expiry date : {_date(ends_ms)}")


def _describe(admin: Admin, options: argparse.Namespace) -> None:
    owners = _principals(options.owner_principal)
    if owners:
        print(f"Calling describe token operation for owners: {_list_text(owners)}")
    else:
        print("Calling describe token operation for current user.")
    found = admin.describe_delegation_tokens(owners or None)
    print(f"Total number of tokens : {len(found)}", end="")
    _print_tokens(found)


_ACTIONS: Final[Mapping[str, Callable[[Admin, argparse.Namespace], None]]] = {
    "create": _create,
    "renew": _renew,
    "expire": _expire,
    "describe": _describe,
}


# What is printed


def _print_tokens(tokens: Iterable[DelegationToken]) -> None:
    print(_ROW.format(*_HEADS))
    for token in tokens:
        found = token.information
        row = (
            *(found.token_id, token.secret, str(found.owner), str(found.requester)),
            _list_text(found.renewers),
            *map(_date, (found.issued_ms, found.expires_ms, found.max_ms)),
        )
        print(_ROW.format(*row))


def _list_text(principals: Iterable[Principal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _date(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%dT%H:%M")


# The command line


def _action(parser: ToolParser, options: argparse.Namespace) -> str:
    asked = [name for name in _ACTIONS if getattr(options, name)]
    if len(asked) != 1:
        parser.error(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    parser.required(options, "bootstrap-server", "command-config", *_NEEDED[asked[0]])
    for name in _FOREIGN[asked[0]]:
        if getattr(options, name.replace("-", "_")) not in (None, []):
            parser.error(f'Option "[{asked[0]}]" can\'t be used with option "[{name}]"')
    return asked[0]


def _principals(words: Iterable[str]) -> list[Principal]:
    return [Principal.parse(word.strip()) for word in words]


def _hmac(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise CommandError("--hmac is not the HMAC of a token: it must be Base64.") from None


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-delegation-tokens",
        "This tool helps to create, renew, expire, or describe delegation tokens.",
    )
    add_bootstrap(parser)
    add_command_config(parser)
    flag, option = parser.flag, parser.add_argument
    flag("create", "Create a new token; --renewer-principal says who else may renew it.")
    flag("renew", "Renew a token; --renew-time-period says for how long.")
    flag("expire", "Set the end of a token; --expiry-time-period says when.")
    flag("describe", "Show tokens of --owner-principal, or all that one may see.")
    for name, text in (
        ("owner-principal", "A Kafka principal in principalType:name format."),
        ("renewer-principal", "A Kafka principal in principalType:name format."),
    ):
        option(f"--{name}", action="append", default=[], metavar="text", help=text)
    for name, text in (
        ("max-life-time-period", "In ms; -1: delegation.token.max.lifetime.ms of the broker."),
        ("renew-time-period", "In ms; -1: delegation.token.expiry.time.ms of the broker."),
        ("expiry-time-period", "In ms; -1: the token ends at once."),
    ):
        option(f"--{name}", type=int, metavar="Long", help=text)
    option("--hmac", metavar="text", help="The HMAC of the token, in Base64.")
    return parser
