"""Values of rows as JSON."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

from penstock.sql.answers.cells import cells_text


def test_moments_are_texts_exact_numbers_stay_exact_and_bytes_are_base64() -> None:
    at = datetime(2024, 1, 2, 3, 4, 5, 678_000, UTC)
    text = cells_text(
        [1, None, True, 1.5, Decimal("1.10"), "ä", b"x", at, date(2024, 1, 2), time(3, 4),
         [at], {"a": {"b": Decimal("2.0")}}]
    )  # fmt: skip
    assert "1.10" in text and '"ä"' in text
    assert json.loads(text) == [
        1, None, True, 1.5, 1.1, "ä", "eA==", "2024-01-02T03:04:05.678", "2024-01-02", "03:04",
        ["2024-01-02T03:04:05.678"], {"a": {"b": 2.0}},
    ]  # fmt: skip
