"""Shards are read in an order in which a key's changes stay in order."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.dynamodb.shards import StreamShard, ancestors, shards_to_read


def family(*pairs: tuple[str, str | None]) -> dict[str, StreamShard]:
    return {name: StreamShard(id=name, parent=parent) for name, parent in pairs}


SPLIT = family(("a", None), ("b", "a"), ("c", "a"), ("d", "c"), ("x", "long gone"))


def names(finished: set[str]) -> list[str]:
    return [one.id for one in shards_to_read(SPLIT, finished)]


def test_children_wait_for_their_parent() -> None:
    assert names(set()) == ["a", "x"]
    assert names({"a"}) == ["b", "c", "x"]
    assert names({"a", "c", "x"}) == ["b", "d"]


def test_whoever_has_begun_a_child_has_finished_its_ancestors() -> None:
    assert ancestors(SPLIT, ["d"]) == {"a", "c"}
    assert ancestors(SPLIT, ["b", "d", "x", "unknown"]) == {"a", "c"}
    assert ancestors(SPLIT, []) == set()


@given(st.lists(st.integers(0, 30), max_size=30), st.randoms())
def test_every_shard_is_read_once_and_never_before_its_parent(
    parents: list[int], random: Random
) -> None:
    """Shard n has an earlier one as its parent, or one that is not listed."""
    tree = family(*((str(n), str(p) if p < n else None) for n, p in enumerate(parents)))
    finished: list[str] = []
    while ready := shards_to_read(tree, set(finished)):
        one = random.choice(ready)
        assert one.id not in finished and (one.parent is None or one.parent in finished)
        finished.append(one.id)
    assert sorted(finished) == sorted(tree)
    for name in tree:
        before = ancestors(tree, [name])
        assert all(finished.index(one) < finished.index(name) for one in before)
