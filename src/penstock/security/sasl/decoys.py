"""Credentials of nobody: what a login by SCRAM is shown for a user that does not exist.

A stranger who begins a login sees a salt and a number of rounds. For an unknown name they must look
like a user's: the same at every login and every broker, of the same form, with as many rounds. So
they come from a secret of the cluster, in a form that some user's credential has.
"""

import hashlib
import hmac
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from penstock.security.sasl.scram import ITERATIONS_MIN, ScramCredential

_TEXT: Final = string.digits + string.ascii_lowercase
_TEXT_BITS: Final = 130  # Kafka's tool writes a number of so many bits, by these letters.
_FORMS_MAX: Final = 16  # A login costs a hash for each.


class CredentialForm(NamedTuple):
    """What a challenge shows of a credential, apart from the salt itself."""

    iterations: int
    salt_bytes: int | None  # None: a number in text, as Kafka's own tool makes it.


DEFAULT_FORM: Final = CredentialForm(ITERATIONS_MIN, 32)  # As our own tool makes them.
TOKEN_FORM: Final = CredentialForm(ITERATIONS_MIN, 16)


def form_of(credential: ScramCredential) -> CredentialForm:
    text = credential.salt.decode("ascii", errors="replace")
    is_text = 20 <= len(text) <= 26 and all(letter in _TEXT for letter in text)
    return CredentialForm(credential.iterations, None if is_text else len(credential.salt))


def forms_of(credentials: Iterable[ScramCredential]) -> tuple[CredentialForm, ...]:
    """The forms that users have, the most usual ones if there are many."""
    usable = (one for one in credentials if one.iterations >= ITERATIONS_MIN)
    counted = Counter(map(form_of, usable))
    usual = sorted(counted, key=lambda form: (-counted[form], form.iterations, str(form)))[
        :_FORMS_MAX
    ]
    return tuple(usual) or (DEFAULT_FORM,)


def decoy(
    name: str, algorithm: str, *, key: bytes, forms: Sequence[CredentialForm]
) -> ScramCredential:
    """The credential of nobody; even a proof that fitted it must not let anybody in.

    Each name draws its form by lot among all, so that a new form moves few of them.
    """
    form = max(forms, key=lambda one: _secret(key, f"{one.iterations} {one.salt_bytes} {name}"))
    secret = _secret(key, name)
    keys = hashlib.new(algorithm, secret).digest()
    return ScramCredential(
        salt=_salt(secret, form), stored_key=keys, server_key=keys, iterations=form.iterations
    )


def _secret(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(errors="surrogatepass"), "sha512")


def _salt(secret: bytes, form: CredentialForm) -> bytes:
    if form.salt_bytes is not None:
        return hashlib.shake_256(secret).digest(form.salt_bytes)
    number = int.from_bytes(secret, "big") >> (8 * len(secret) - _TEXT_BITS)
    letters = []
    while number:
        number, digit = divmod(number, len(_TEXT))
        letters.append(_TEXT[digit])
    return "".join(reversed(letters)).encode()
