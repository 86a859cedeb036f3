"""Each example of the guide is run in the test driver, and prints what the comment behind it says.

What is shown of Spark needs a broker: `tests/integration/streams/test_guide.py` runs it.
"""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parents[4] / "docs" / "streams.md"
NEEDS_A_BROKER = ("KafkaStreams(", "app.store(")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def examples() -> list[str]:
    """The blocks that need no broker, in the order of the guide: each may build on those before."""
    blocks = BLOCK.findall(GUIDE.read_text())
    return [one for one in blocks if not any(word in one for word in NEEDS_A_BROKER)]


def test_every_example_prints_what_the_guide_says() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    assert len(examples()) > 15
    for number, block in enumerate(examples()):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, f"{GUIDE.name}, example {number}", "exec"), names)
        assert out.getvalue().splitlines() == PRINTED.findall(block), block


def test_every_operation_of_the_dsl_is_in_the_guide() -> None:
    from penstock.streams import KStream, KTable, StreamsBuilder

    text = GUIDE.read_text()
    for cls in (KStream, KTable, StreamsBuilder):
        named = [name for name in vars(cls) if not name.startswith("_")]
        methods = [name for name in named if callable(getattr(cls, name))]
        assert [name for name in methods if f"{name}" not in text] == [], cls
