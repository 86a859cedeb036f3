"""What every message does: construction, comparison, versions, refusal, parts."""

from typing import Any

import pytest

from penstock.errors import ErrorCode, UnsupportedVersion
from penstock.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.protocol.primitives import MalformedMessage
from penstock.protocol.schema import (
    Message,
    Struct,
    array,
    blob,
    int16,
    int32,
    record_set,
    string,
    struct,
    version_range,
)


class Point(Struct):
    """A struct without lists, so its default can be shared."""

    x: int = int32("0+", default=-1)
    y: int = int32("1+", default=-1)


class Basket(Struct):
    """A struct with a list, so each default is its own."""

    items: list[str] = array(string, "0+")


class Letter(Message, versions="0-3", flexible="2+"):
    """A message with a bit of everything."""

    subject: str = string("0+")
    note: str | None = string("1+", nullable=True, default=None)
    point: Point = struct(Point, "2+", tag=0)
    spare: Point | None = struct(Point, "1+", nullable=True, default=None)
    basket: Basket = struct(Basket, "0+")
    numbers: list[int] = array(int16, "0+")
    rank: int = int32("3+", default=7, ignorable=True)
    seal: bytes = blob("0-2", ignorable=True)


class Parcel(Message, versions="0-1", flexible="1+"):
    """A message with two record sets."""

    first: object = record_set("0+", nullable=True)
    label: str = string("0+")
    second: object = record_set("0+", nullable=True)


class Slice:
    """Stands for records in a file: it has a length, and it is not bytes."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


def test_a_constructor_takes_keywords_and_fills_in_defaults() -> None:
    letter = Letter(subject="hi")
    assert (letter.subject, letter.note, letter.rank, letter.numbers) == ("hi", None, 7, [])
    assert letter.point == Point(x=-1, y=-1)


def test_a_constructor_refuses_positions_and_unknown_names() -> None:
    with pytest.raises(TypeError):
        Letter("hi")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Letter(subjekt="hi")  # type: ignore[call-arg]


def test_no_attribute_can_be_set_that_was_not_declared() -> None:
    with pytest.raises(AttributeError):
        Letter().subjekt = "hi"  # type: ignore[attr-defined]


def test_lists_and_structs_with_lists_are_not_shared_between_messages() -> None:
    first, second = Letter(), Letter()
    first.numbers.append(1)
    first.basket.items.append("apple")
    assert (second.numbers, second.basket.items) == ([], [])


def test_a_shared_default_refuses_to_be_changed_and_says_what_to_do() -> None:
    letter = Letter()
    with pytest.raises(AttributeError, match="assign a new Point instead"):
        letter.point.x = 5
    letter.point = Point(x=5)
    assert Letter().point.x == -1


def test_a_shared_default_is_an_instance_of_its_class_and_prints_as_it() -> None:
    assert isinstance(Letter().point, Point)
    assert repr(Letter().point) == "Point(x=-1, y=-1)"


def test_messages_are_equal_by_class_and_value() -> None:
    assert Letter(subject="a") == Letter(subject="a")
    assert Letter(subject="a") != Letter(subject="b")
    assert Point() != Basket()
    assert Point() != "Point"


@pytest.mark.parametrize("version", Letter.versions)
def test_a_message_comes_back_in_every_version(version: int) -> None:
    letter = Letter(subject="ä", numbers=list(range(40)), basket=Basket(items=["x", "y"]))
    if version >= 1:
        letter.note, letter.spare = "n", Point(x=3)
    if version >= 2:
        letter.point = Point(x=1, y=2)
    assert Letter.decode(letter.encode(version), version) == letter


def test_a_message_can_be_read_from_within_a_frame() -> None:
    encoded = Letter(subject="a").encode(0)
    assert Letter.decode(b"head" + encoded, 0, offset=4) == Letter(subject="a")
    message, end = Letter.decode_prefix(b"head" + encoded + b"tail", 0, 4)
    assert (message, end) == (Letter(subject="a"), 4 + len(encoded))


def test_bytes_after_a_message_are_malformed() -> None:
    with pytest.raises(MalformedMessage, match="1 bytes follow the Letter"):
        Letter.decode(Letter().encode(0) + b"\0", 0)


@pytest.mark.parametrize("version", Letter.versions)
def test_every_shortened_message_is_malformed(version: int) -> None:
    encoded = Letter(subject="abc", numbers=[1, 2], basket=Basket(items=["x"])).encode(version)
    for end in range(len(encoded)):
        with pytest.raises(MalformedMessage):
            Letter.decode_prefix(encoded[:end], version)


def test_a_field_that_the_version_lacks_is_refused_unless_it_is_at_its_default() -> None:
    Letter(note=None).encode(0)
    with pytest.raises(UnsupportedVersion, match=r"Letter\.note cannot be sent in version 0") as e:
        Letter(note="n").encode(0)
    assert e.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(UnsupportedVersion, match=r"Letter\.point"):
        Letter(point=Point(x=1)).encode(1)
    with pytest.raises(UnsupportedVersion, match=r"Point\.y"):
        Parts(point=Point(y=1)).encode(0)


class Parts(Message, versions="0-1"):
    """A struct inside may lack fields too."""

    point: Point = struct(Point, "0+")


def test_an_ignorable_field_that_the_version_lacks_is_dropped() -> None:
    assert Letter(rank=3).encode(2) == Letter().encode(2)
    assert Letter(seal=b"wax").encode(3) == Letter().encode(3)


def test_a_default_written_out_equals_a_default_left_out() -> None:
    assert Letter(point=Point(x=-1, y=-1)).encode(2) == Letter().encode(2)


def test_an_unknown_tagged_field_is_stepped_over() -> None:
    plain = Letter(subject="a").encode(2)
    assert plain[-1] == 0
    tagged = plain[:-1] + b"\x01" + b"\x63\x03abc"
    assert Letter.decode(tagged, 2) == Letter(subject="a")


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (b"\x01\x00\x08" + bytes(7) + b"\x00", "end too early"),
        (b"\x01\x00\x0a" + bytes(8) + b"\x00\x00", "wrong size"),
        (b"\x01\x63\x7fabc", "runs past the end"),
    ],
)
def test_a_tagged_field_of_a_wrong_size_is_malformed(tags: bytes, reason: str) -> None:
    plain = Letter(subject="a").encode(2)
    with pytest.raises(MalformedMessage, match=reason):
        Letter.decode(plain[:-1] + tags, 2)


def test_null_where_a_value_is_needed_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="null where a value is needed"):
        Letter.decode(b"\xff\xff", 0)
    with pytest.raises(MalformedMessage, match="null where a list is needed"):
        MetadataRequest.decode(b"\xff\xff\xff\xff", 0)


def test_null_is_taken_only_in_the_versions_that_allow_it() -> None:
    assert MetadataRequest.decode(b"\xff\xff\xff\xff", 1).topics is None
    with pytest.raises(ValueError, match="MetadataRequest cannot be written in version 0"):
        MetadataRequest(topics=None).encode(0)


def test_text_that_is_not_utf8_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="not UTF-8"):
        Letter.decode(b"\x00\x02\xc3\x28" + bytes(8), 0)


def test_a_version_that_does_not_exist_is_unsupported_both_ways() -> None:
    with pytest.raises(UnsupportedVersion, match="Letter has versions 0 to 3, not 4"):
        Letter().encode(4)
    with pytest.raises(UnsupportedVersion, match="Letter has versions 0 to 3, not -1"):
        Letter.decode(b"", -1)


def test_a_value_that_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="Letter cannot be written in version 0"):
        Letter(numbers=[2**15]).encode(0)
    with pytest.raises(ValueError, match="Letter cannot be written in version 0"):
        Letter(subject=None).encode(0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Letter cannot be written in version 1"):
        Letter(subject="x" * 2**15).encode(1)


def test_an_id_of_a_wrong_length_is_refused_rather_than_padded() -> None:
    for topic_id in (b"short", bytes(17)):
        with pytest.raises(ValueError, match="an id has 16 bytes"):
            FetchRequest(topics=[FetchTopic(topic_id=topic_id)]).encode(13)


def test_any_empty_sequence_counts_as_an_empty_list() -> None:
    empty: Any = ()
    assert ProduceResponse(node_endpoints=empty).encode(10) == ProduceResponse().encode(10)
    assert ProduceResponse(node_endpoints=empty).encode(9) == ProduceResponse().encode(9)


@pytest.mark.parametrize("version", [0, 1])
def test_records_that_are_no_bytes_stand_in_the_parts_as_themselves(version: int) -> None:
    first, second = Slice(300), Slice(5)
    parts = Parcel(first=first, label="x", second=second).encode_parts(version)
    assert [part for part in parts if isinstance(part, Slice)] == [first, second]
    filled = b"".join(p if isinstance(p, bytes) else bytes(len(p)) for p in parts)  # type: ignore[arg-type]
    assert filled == Parcel(first=bytes(300), label="x", second=bytes(5)).encode(version)


@pytest.mark.parametrize("version", [0, 1])
def test_records_that_are_bytes_are_joined_with_their_neighbours(version: int) -> None:
    parcel = Parcel(first=memoryview(b"abc"), label="x", second=None)
    assert parcel.encode_parts(version) == [parcel.encode(version)]


def test_a_slice_of_no_length_leaves_no_part() -> None:
    assert Parcel(first=Slice(0), label="x").encode_parts(0) == [
        Parcel(first=b"", label="x").encode(0)
    ]


def test_records_are_decoded_as_views_of_the_frame_without_a_copy() -> None:
    frame = bytearray(Parcel(first=b"abc", label="x", second=None).encode(1))
    parcel = Parcel.decode(frame, 1)
    assert isinstance(parcel.first, memoryview)
    frame[frame.index(b"abc")] = ord("z")
    assert bytes(parcel.first) == b"zbc"


def test_a_fetch_response_of_file_slices_alternates_bytes_and_slices() -> None:
    slices = [Slice(10), Slice(20)]
    partitions = [PartitionData(partition_index=i, records=s) for i, s in enumerate(slices)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = response.encode_parts(12)
    assert [type(part) for part in parts] == [bytes, Slice, bytes, Slice, bytes]
    assert [type(part) for part in response.encode_parts(11)] == [bytes, Slice, bytes, Slice]


def test_only_a_moved_leader_costs_bytes_in_a_fetch_response() -> None:
    def encoded(leader: LeaderIdAndEpoch) -> bytes:
        partition = PartitionData(partition_index=1, current_leader=leader)
        return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])]).encode(12)

    unmoved = encoded(LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1))
    moved = encoded(LeaderIdAndEpoch(leader_id=3, leader_epoch=9))
    assert len(moved) == len(unmoved) + 2 + 9


def test_produce_and_fetch_name_topics_by_id_from_version_13_on() -> None:
    topic = TopicProduceData(name="t", topic_id=b"i" * 16)
    assert ProduceRequest.decode(ProduceRequest(topic_data=[topic]).encode(13), 13).topic_data == [
        TopicProduceData(topic_id=b"i" * 16)
    ]
    fetch = FetchRequest(topics=[FetchTopic(topic="t", topic_id=b"i" * 16)])
    assert FetchRequest.decode(fetch.encode(12), 12).topics == [FetchTopic(topic="t")]


def test_a_produce_request_of_2016_reads_as_it_was_written() -> None:
    frame = bytes.fromhex(
        "0001"  # acks
        "000003e8"  # timeout
        "00000001" + "0001" + "74"  # one topic, t
        "00000001" + "00000002" + "00000003" + "616263"  # one partition, 2, three bytes
    )
    request = ProduceRequest.decode(frame, 0)
    partition = PartitionProduceData(index=2, records=b"abc")
    assert request == ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )
    assert request.encode(0) == frame


def test_a_throttle_time_is_dropped_where_old_clients_have_no_place_for_it() -> None:
    assert ProduceResponse(throttle_time_ms=5).encode(0) == bytes(4)


def test_metadata_by_id_is_refused_where_the_version_has_only_names() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"i" * 16, name="t")])
    assert MetadataRequest.decode(request.encode(9), 9).topics == [MetadataRequestTopic(name="t")]


@pytest.mark.parametrize(
    ("text", "expected"), [("0-2", (0, 2)), ("3", (3, 3)), ("12+", (12, 0x7FFF))]
)
def test_version_ranges_are_read(text: str, expected: tuple[int, int]) -> None:
    assert version_range(text) == expected
