"""The login line of Java clients, in the forms that people write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.security.sasl.jaas import parse, user_and_password

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    "text",
    [
        f'{PLAIN} required username="al" password="p w";',
        f"{PLAIN} required username='al' password='p w';",
        f'{PLAIN} required\n  username="al"\n  password="p w" ;',
        f'{PLAIN} Required password = "p w" username=al serviceName="kafka";',
        'username="al" password="p w"',
    ],
)
def test_user_and_password_are_found(text: str) -> None:
    assert user_and_password(text) == ("al", "p w")


@given(st.text(st.characters(codec="utf-8")))
def test_a_quoted_password_may_hold_anything(password: str) -> None:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    text = f'{PLAIN} required username="al" password="{quoted}";'
    assert user_and_password(text) == ("al", password)


@pytest.mark.parametrize(
    "text", ["", PLAIN, f'{PLAIN} required username="al";', f'{PLAIN} required password="hush";']
)
def test_one_that_lacks_either_is_told_so(text: str) -> None:
    with pytest.raises(ConfigError, match="must hold username") as caught:
        user_and_password(text)
    assert "hush" not in str(caught.value)


def test_what_cannot_be_read_is_told_without_the_secret() -> None:
    with pytest.raises(ConfigError, match="cannot be read from character") as caught:
        parse(f'{PLAIN} required username="al" password="hush;')
    assert "hush" not in str(caught.value)


def test_delegation_tokens_are_refused() -> None:
    with pytest.raises(ConfigError, match="tokenauth"):
        user_and_password('username="a" password="b" tokenauth="true"')
