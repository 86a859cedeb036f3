"""The ids of topics from run to run: what changed while nobody looked is noticed."""

from pathlib import Path

from penstock.client.wire.raw_fetch import NO_TOPIC_ID
from penstock.spark.source.topic_ids import TopicIds

OLD, NEW = b"o" * 16, b"n" * 16


def test_another_id_is_noticed_in_the_same_run_and_in_the_next(tmp_path: Path) -> None:
    first = TopicIds(str(tmp_path))
    assert first.changed({"t": OLD}) == set()
    first.note({"t": OLD, "u": OLD})
    assert first.changed({"t": NEW, "u": OLD}) == {"t"}
    assert TopicIds(f"file://{tmp_path}").changed({"t": NEW, "u": OLD, "v": NEW}) == {"t"}


def test_what_was_read_is_what_counts_from_then_on(tmp_path: Path) -> None:
    TopicIds(str(tmp_path)).note({"t": OLD})
    TopicIds(str(tmp_path)).note({"t": NEW})
    assert TopicIds(str(tmp_path)).changed({"t": NEW}) == set()


def test_a_query_that_begins_anew_knows_nothing(tmp_path: Path) -> None:
    TopicIds(str(tmp_path)).note({"t": OLD})
    TopicIds(str(tmp_path)).forget()
    assert TopicIds(str(tmp_path)).changed({"t": NEW}) == set()


def test_brokers_without_ids_are_no_reason_to_complain(tmp_path: Path) -> None:
    kept = TopicIds(str(tmp_path))
    kept.note({"t": OLD})
    assert kept.changed({"t": NO_TOPIC_ID}) == set()
    kept.note({"t": NO_TOPIC_ID})
    assert kept.changed({"t": NEW}) == {"t"}


def test_without_a_place_only_this_run_is_known() -> None:
    for place in (None, "hdfs://far/away"):
        kept = TopicIds(place)
        kept.note({"t": OLD})
        assert kept.changed({"t": NEW}) == {"t"}


def test_names_of_topics_make_no_paths(tmp_path: Path) -> None:
    TopicIds(str(tmp_path / "inner")).note({"..": OLD, ".": OLD})
    assert [child.name for child in tmp_path.iterdir()] == ["inner"]
    assert TopicIds(str(tmp_path / "inner")).changed({"..": NEW, ".": OLD}) == {".."}
