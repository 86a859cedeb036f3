"""Names of objects, made and read back."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.objects.names import NameRules

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True)


@given(topic=TOPICS, partition=st.integers(0, 9999), offset=st.integers(0, 2**63 - 1))
def test_a_name_tells_what_it_was_made_of(topic: str, partition: int, offset: int) -> None:
    rules = NameRules()
    for extension in (".snappy.parquet", f"+{offset + 5}.json"):  # Some name the last offset too.
        name = rules.name(topic, partition, offset, extension)
        found = rules.parse(f"topics/{topic}/partition=0/{name}")
        assert found is not None
        assert (found.topic, found.partition, found.first_offset) == (topic, partition, offset)


def test_other_names_say_nothing() -> None:
    for name in ("a/b.json", "_SUCCESS", "a+b.json", "a+1+.json", "+1+2"):
        assert NameRules().parse(name) is None
