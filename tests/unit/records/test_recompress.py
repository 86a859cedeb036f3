import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records.samples import MIB, record_lists, some_records

from penstock.errors import CorruptRecord
from penstock.records.batch import Record, build_batch, check_batch, read_header, read_records
from penstock.records.compression import Codec
from penstock.records.recompress import codec_for_setting, recompress


@settings(max_examples=40)
@given(record_lists(), st.sampled_from(Codec), st.sampled_from(Codec))
def test_a_batch_changes_nothing_but_its_codec(
    records: list[Record], before: Codec, after: Codec
) -> None:
    batch = build_batch(
        records,
        codec=before,
        producer_id=6,
        producer_epoch=5,
        base_sequence=4,
        leader_epoch=3,
        is_transactional=True,
    )
    changed = recompress(batch, codec=after)
    header = check_batch(memoryview(changed))
    assert header.codec is after
    assert list(read_records(changed)) == records
    same = ("batch_length", "crc", "attributes")
    expected = read_header(batch)._replace(**{name: getattr(header, name) for name in same})
    assert header == expected
    assert header.is_transactional
    assert recompress(changed, codec=Codec.NONE) == recompress(batch, codec=Codec.NONE)


def test_a_payload_beyond_the_bound_is_refused() -> None:
    batch = build_batch(some_records(1, value=bytes(MIB)), codec=Codec.ZSTD)
    with pytest.raises(CorruptRecord):
        recompress(batch, codec=Codec.NONE, bytes_max=MIB)


@pytest.mark.parametrize(
    ("setting", "codec"),
    [
        ("producer", None),
        ("uncompressed", Codec.NONE),
        ("none", Codec.NONE),
        ("gzip", Codec.GZIP),
        ("snappy", Codec.SNAPPY),
        ("lz4", Codec.LZ4),
        ("zstd", Codec.ZSTD),
    ],
)
def test_the_setting_names_a_codec_or_leaves_it_to_the_producer(
    setting: str, codec: Codec | None
) -> None:
    assert codec_for_setting(setting) is codec
