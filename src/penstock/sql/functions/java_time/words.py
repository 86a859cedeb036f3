"""The names of months, days and eras, in English."""

from typing import Final

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
QUARTERS: Final = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
HALVES: Final = ("AM", "PM")


def styled(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The names as so many letters ask for them: 3 short, 4 full, 5 one letter."""
    if count == 4:
        return names
    return tuple(name[:1] if count == 5 else name[:3] for name in names)
