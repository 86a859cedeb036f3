"""Credentials of nobody: always the same, and in the forms that users have."""

import pytest

from penstock.security.sasl.decoys import (
    DEFAULT_FORM,
    CredentialForm,
    decoy,
    form_of,
    forms_of,
)
from penstock.security.sasl.scram import HASHES, ScramCredential

KEY = b"secret of the cluster"
JAVAS = CredentialForm(8192, None)


def credential(salt: bytes, iterations: int = 4096) -> ScramCredential:
    return ScramCredential(salt=salt, stored_key=b"s", server_key=b"k", iterations=iterations)


def test_forms_are_those_of_the_users_the_most_usual_first() -> None:
    javas = credential(b"1k0f3vbqz9y2x8w7u6t5s4r3q", 8192)
    assert forms_of([credential(b"\xff" * 32), javas, javas]) == (JAVAS, DEFAULT_FORM)
    assert forms_of([]) == forms_of([credential(b"weak", 1)]) == (DEFAULT_FORM,)
    assert len(forms_of(credential(b"\xff" * size) for size in range(1, 100))) == 16


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("form", [DEFAULT_FORM, JAVAS, CredentialForm(16_384, 64)])
def test_a_decoy_has_a_form_of_the_users(mechanism: str, form: CredentialForm) -> None:
    for number in range(200):
        made = decoy(f"nobody-{number}", HASHES[mechanism], key=KEY, forms=[form])
        assert form_of(made) == form
        assert made == decoy(f"nobody-{number}", HASHES[mechanism], key=KEY, forms=[form])


def test_names_and_keys_have_salts_of_their_own() -> None:
    salts = {
        decoy(name, "sha256", key=key, forms=[DEFAULT_FORM]).salt
        for name in ("one", "two")
        for key in (KEY, b"another")
    }
    assert len(salts) == 4


def test_a_new_form_moves_only_those_who_have_it_then() -> None:
    names = [f"nobody-{number}" for number in range(300)]
    before = {name: decoy(name, "sha256", key=KEY, forms=[DEFAULT_FORM]) for name in names}
    after = {name: decoy(name, "sha256", key=KEY, forms=[JAVAS, DEFAULT_FORM]) for name in names}
    moved = [name for name in names if after[name] != before[name]]
    assert 75 < len(moved) < 225
    assert {form_of(after[name]) for name in moved} == {JAVAS}
