"""Which variant is chosen."""

import pytest

from penstock.sql.functions.overloads import FunctionRefused, Overload, choose
from penstock.sql.functions.patterns import LambdaShape, signature
from penstock.sql.types import kinds as k


def variants(*texts: str) -> list[Overload]:
    return [Overload(signature=signature(text), call=len) for text in texts]


@pytest.mark.parametrize(
    ("texts", "arguments", "chosen"),
    [
        (("(BIGINT) -> T", "(DOUBLE) -> T"), [k.INTEGER], 0),
        (("(DOUBLE) -> T", "(BIGINT) -> T", "(DECIMAL) -> T"), [k.INTEGER], 1),
        (("(DOUBLE) -> T", "(DECIMAL) -> T"), [k.INTEGER], 1),
        (("(DOUBLE) -> T", "(DECIMAL) -> T"), [k.DOUBLE], 0),
        (("(T) -> T", "(STRING) -> T"), [k.STRING], 1),
        (("(STRING...) -> T", "(STRING) -> T"), [k.STRING], 1),
        (("(STRING...) -> T", "(STRING) -> T"), [k.STRING, k.STRING], 0),
        (("(STRING...) -> T",), [], 0),
        (("(ARRAY<T>, LAMBDA<T, U>) -> U", "(ARRAY<T>, LAMBDA<T, T, U>) -> U"),
         [k.ArrayOf(k.DATE), LambdaShape(2)], 1),
        (("(MAP<K, V>) -> K", "(ARRAY<K>) -> K"), [k.ArrayOf(k.STRING)], 1),
    ],
)  # fmt: skip
def test_the_nearest_variant_is_chosen(
    texts: tuple[str, ...], arguments: list, chosen: int
) -> None:  # type: ignore[type-arg]
    overloads = variants(*texts)
    assert choose("F", overloads, arguments)[0] is overloads[chosen]


def test_a_blank_is_one_type_wherever_it_stands() -> None:
    overloads = variants("(T, T) -> T")
    with pytest.raises(FunctionRefused, match=r"does not accept parameters \(INTEGER, STRING\)"):
        choose("F", overloads, [k.INTEGER, k.STRING])
    _, filled = choose("F", overloads, [None, k.STRING])
    assert filled.type_of(overloads[0].signature.result) == k.STRING


def test_a_refusal_lists_what_would_be_taken() -> None:
    with pytest.raises(FunctionRefused) as refused:
        choose("F", variants("(ARRAY<T>, STRING...) -> T", "() -> DATE"), [k.DATE])
    assert "Valid alternatives are:\nF(ARRAY<T>, STRING...)\nF()\n" in str(refused.value)


@pytest.mark.parametrize("text", ["STRING -> T", "(NOPE) -> T", "(ARRAY T) -> T"])
def test_a_signature_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"is missing|is no type"):
        signature(text)
