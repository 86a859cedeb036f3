"""Signatures of requests between workers."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.group.session_keys import SessionKey, check_signature
from penstock.connect.herder.refusals import RequestRefused
from penstock.connect.store.config_records import SessionKeySet, decode_config

KEY = SessionKey(key=b"k" * 32, algorithm="HmacSHA256", created_ms=1000)
SHA256 = ("HmacSHA256",)


@given(st.binary(), st.binary())
def test_a_signature_fits_its_body_alone(body: bytes, other: bytes) -> None:
    headers = KEY.signed(body, "HmacSHA256")
    check_signature(KEY, headers, body, SHA256)
    if other != body:
        with pytest.raises(RequestRefused, match="invalid signature"):
            check_signature(KEY, headers, other, SHA256)


def test_the_signature_is_that_of_the_standard() -> None:
    expected = base64.b64encode(hmac.new(KEY.key, b"[]", hashlib.sha256).digest()).decode()
    assert KEY.signed(b"[]", "HmacSHA256") == {
        "X-Connect-Authorization": expected,
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }


def test_a_key_comes_back_from_its_record() -> None:
    made = SessionKey.made("HmacSHA256", 5)
    told = decode_config(*made.record())
    assert isinstance(told, SessionKeySet)
    assert SessionKey.of(told.document) == made
    assert len(made.key) == 32


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"key": "%", "algorithm": "x", "creation-timestamp": 1},
        {"key": "", "algorithm": "x", "creation-timestamp": None},
    ],
)
def test_a_record_without_a_key_gives_none(document: dict[str, object]) -> None:
    assert SessionKey.of(document) is None


def test_a_key_is_replaced_when_it_is_old_or_of_another_algorithm() -> None:
    assert not KEY.is_old(1999, 1000, "HmacSHA256")
    assert KEY.is_old(2000, 1000, "HmacSHA256")
    assert not KEY.is_old(9999, 0, "HmacSHA256")
    assert KEY.is_old(1000, 1000, "HmacSHA512")


@pytest.mark.parametrize(
    ("key", "headers", "status"),
    [
        (KEY, {}, 400),
        (KEY, {"X-Connect-Authorization": "AA=="}, 400),
        (KEY, KEY.signed(b"", "HmacSHA1"), 400),
        (None, KEY.signed(b"", "HmacSHA256"), 503),
        (KEY, {**KEY.signed(b"", "HmacSHA256"), "X-Connect-Authorization": "%"}, 400),
        (KEY, SessionKey.made("HmacSHA256", 0).signed(b"", "HmacSHA256"), 403),
    ],
)
def test_what_is_not_signed_right_is_refused(
    key: SessionKey | None, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(RequestRefused) as refused:
        check_signature(key, headers, b"", SHA256)
    assert refused.value.status == status
