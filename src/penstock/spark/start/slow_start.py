"""A Python process of Spark that came too late: known by Spark's words, and tried again.

Spark gives the process that plans a stream ten seconds to load PySpark and connect back, which
nobody can change. On a busy machine that is too short, and the query fails though nothing is wrong
with it. Whoever starts queries asks here before giving one up.
"""

SLOW_START = (
    "Spark did not wait for one of its Python processes: the machine was too busy to start it "
    "within 10 s"
)
RETRIES_MAX = 5  # In a row, for those who must end some time: a minute and a half in all.
_SPARKS_WORDS = (
    "Python worker failed to connect back",
    "Timed out while waiting for the Python worker",
    "Python daemon failed to launch worker",
)


def is_slow_start(text: str) -> bool:
    """Whether this failure of Spark says so, in any of the traces it is wrapped in."""
    return any(words in text for words in _SPARKS_WORDS)
