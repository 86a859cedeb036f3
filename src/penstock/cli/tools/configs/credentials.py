"""SCRAM credentials of users, as kafka-configs shows and changes them."""

import re
from collections.abc import Mapping, Sequence

from penstock.cli.tools.configs.entities import Entity
from penstock.client.admin import Admin
from penstock.client.operations.scram_credentials import MECHANISMS, NewScramCredential
from penstock.errors import CommandError
from penstock.security.sasl.scram import ITERATIONS_MIN

_VALUE = re.compile(r"(?:iterations=([0-9]*),)?password=(.*)", re.DOTALL)


def is_credential(key: str) -> bool:
    """Whether a key of --add-config is a mechanism, and not a quota."""
    return key in MECHANISMS


def describe(admin: Admin, entities: Sequence[Entity]) -> None:
    """Print a line for each user that has credentials; never a secret."""
    if len(entities) != 1 or entities[0].type != "users" or entities[0].name == "":
        return
    users = [entities[0].name] if entities[0].name else []
    for user, credentials in admin.describe_user_scram_credentials(users).items():
        print(credential_line(user, credentials))


def credential_line(user: str, credentials: Mapping[str, int]) -> str:
    """`SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192`."""
    texts = ", ".join(f"{name}=iterations={count}" for name, count in credentials.items())
    return f"SCRAM credential configs for user-principal '{user}' are {texts}"


def alter(
    admin: Admin, entities: Sequence[Entity], added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and remove credentials of one user."""
    if len(entities) != 1 or entities[0].type != "users":
        raise CommandError("SCRAM credentials belong to users alone, not to clients.")
    user = entities[0].name
    if not user:
        raise CommandError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            "Credentials using --bootstrap-server."
        )
    wanted = [parse_credential(name, value) for name, value in added.items()]
    admin.alter_user_scram_credentials(user, set_to=wanted, delete=deleted)


def parse_credential(mechanism: str, value: str) -> NewScramCredential:
    """`iterations=8192,password=secret`, or the password alone."""
    match = _VALUE.fullmatch(value)
    if match is None or not match[2]:
        raise CommandError(
            f"{mechanism} must be written as [iterations=8192,password=...]: no password is found."
        )
    iterations = int(match[1]) if match[1] else ITERATIONS_MIN
    if iterations < ITERATIONS_MIN:
        raise CommandError(
            f"Iterations {iterations} is less than the minimum {ITERATIONS_MIN} required for "
            f"{mechanism}"
        )
    return NewScramCredential(mechanism=mechanism, password=match[2], iterations=iterations)
