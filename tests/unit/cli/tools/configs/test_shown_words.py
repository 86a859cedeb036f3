"""No secret of a command line is in what a failure shows of it."""

import pytest

from penstock.cli.tools.configs.shown_words import shown


@pytest.mark.parametrize("option", ["--add-config", "-add-config", "--add-conf"])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("a=1,b=[x,y]", "a=1,b=[x,y]"),
        ("SCRAM-SHA-256=[password=s3,cr]et]", "SCRAM-SHA-256=[hidden]"),
        ("a=1,SCRAM-SHA-512=[iterations=4096,password=s3]", "a=1,SCRAM-SHA-512=[hidden]"),
        (
            "listener.name.x.ssl.keystore.password=s3",
            "listener.name.x.ssl.keystore.password=[hidden]",
        ),
        ('a.plain.sasl.jaas.config=user_a="s3";', "a.plain.sasl.jaas.config=[hidden]"),
    ],
)
def test_secrets_are_hidden(option: str, given: str, told: str) -> None:
    who = ["--alter", "--entity-name", "password=x"]
    assert shown([*who, option, given, "--force"]) == [*who, option, told, "--force"]
    assert shown([*who, f"{option}={given}"]) == [*who, f"{option}={told}"]
