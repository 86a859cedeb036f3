"""AlterUserScramCredentials: credentials are stored where Kafka stores them, beside quotas."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryDataRequest,
    OpData,
)
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from penstock.security.sasl.scram import ScramCredential, salted_password

NAMES = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def upsertion(user: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = salted_password(NAMES.get(mechanism, NAMES[1]), "secret", b"salt", 4096)
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=salted,
    )


def alter(served: Any, *changes: Any) -> dict[str, int]:
    kinds = (ScramCredentialDeletion, ScramCredentialUpsertion)
    deletions, upsertions = ([one for one in changes if isinstance(one, kind)] for kind in kinds)
    asked = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    return {result.user: result.error_code for result in served.ask(asked, 0).results}


def described(served: Any, *users: str) -> dict[str, Any]:
    asked = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
    return {
        result.user: {info.mechanism: info.iterations for info in result.credential_infos}
        or result.error_code
        for result in served.ask(asked, 0).results
    }


def test_a_credential_is_stored_as_kafka_writes_it(served: Any) -> None:
    assert alter(served, upsertion("al ice"), upsertion("al ice", 2, 8192)) == {"al ice": 0}
    stored = served.broker.image.config("users", "al%20ice")
    assert set(stored) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    right = ScramCredential.from_password("SCRAM-SHA-256", "secret", salt=b"salt", iterations=4096)
    assert ScramCredential.from_text(stored["SCRAM-SHA-256"]) == right
    assert described(served) == {"al ice": {1: 4096, 2: 8192}}


def test_a_credential_leaves_the_quotas_of_its_user_alone(served: Any) -> None:
    entry = EntryDataRequest(
        entity=[EntityData(entity_type="user", entity_name="u")],
        ops=[OpData(key="producer_byte_rate", value=10.0, remove=False)],
    )
    served.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
    assert described(served) == {}
    alter(served, upsertion("u"))
    assert set(served.broker.image.config("users", "u")) == {"producer_byte_rate", "SCRAM-SHA-256"}
    alter(served, ScramCredentialDeletion(name="u", mechanism=1))
    assert set(served.broker.image.config("users", "u")) == {"producer_byte_rate"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([upsertion("")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("u", iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("u", iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("u", mechanism=9)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([upsertion("u"), upsertion("u")], ErrorCode.DUPLICATE_RESOURCE),
        (
            [ScramCredentialDeletion(name="u", mechanism=2)],
            ErrorCode.RESOURCE_NOT_FOUND,
        ),
    ],
)
def test_what_cannot_be_is_refused_and_the_others_are_done(
    served: Any, changes: list[Any], code: ErrorCode
) -> None:
    assert alter(served, *changes, upsertion("good")) == {changes[0].name: code, "good": 0}
    assert described(served) == {"good": {1: 4096}}


def test_users_are_found_by_name_or_not(served: Any) -> None:
    alter(served, upsertion("u"))
    found = described(served, "u", "nobody", "twice", "twice")
    assert found == {
        "u": {1: 4096},
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
    }
