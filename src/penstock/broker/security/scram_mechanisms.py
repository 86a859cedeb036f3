"""SCRAM's mechanisms as numbered in the requests that set and show credentials (KIP-554)."""

from typing import Final

MECHANISM_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
MECHANISM_NAMES: Final = {number: name for name, number in MECHANISM_NUMBERS.items()}
