"""What a sink's settings need of each other."""

from tests.unit.connect.connectors.objects.rig import sink_config

from penstock.connect.connectors.objects.settings import SINK_CONFIG, checked_sink


def errors(config: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return checked_sink(SINK_CONFIG.validate(config)).errors()


def test_all_errors_are_told_at_once() -> None:
    found = errors(
        {
            "format.class": "CsvFormat",
            "flush.size": "0",
            "timezone": "Mars/Base",
            "locale": "de-DE",
            "path.format": "'year'=xxxx",
            "timestamp.extractor": "Tea",
            "schema.compatibility": "FULL",
            "parquet.codec": "rar",
            "partitioner.class": "x.FieldPartitioner",
        }
    )
    assert set(found) == {
        "format.class",
        "flush.size",
        "timezone",
        "locale",
        "path.format",
        "timestamp.extractor",
        "schema.compatibility",
        "parquet.codec",
        "partition.field.name",
    }


def test_time_based_folders_need_a_pattern_a_duration_and_a_zone() -> None:
    found = errors(sink_config(partitioner_class="x.TimeBasedPartitioner"))
    assert set(found) == {"path.format", "partition.duration.ms", "timezone"}
    assert set(errors(sink_config(partitioner_class="x.DailyPartitioner"))) == {"timezone"}


def test_what_is_needed_is_enough() -> None:
    assert errors(sink_config(locale="en-US", timezone="Europe/Berlin")) == {}
