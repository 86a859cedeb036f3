"""A batch under another compression, for topics whose `compression.type` is not `producer`.

Records are not decoded: the payload is unpacked and packed again, and the header keeps everything
but the codec, the length and the CRC.
"""

from penstock.records import Bytes
from penstock.records.batch import CODEC_BITS, read_header, seal, view_payload
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, Codec, compress

# None: the batch stays as the producer compressed it.
_CODEC_BY_SETTING: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "none": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def codec_for_setting(compression_type: str) -> Codec | None:
    """What a topic's `compression.type` asks for; None: whatever the producer chose."""
    return _CODEC_BY_SETTING[compression_type]


def recompress(
    batch: Bytes,
    *,
    codec: Codec,
    level: int | None = None,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """The same batch in another codec; CorruptRecord if it does not unpack within `bytes_max`."""
    header = read_header(batch)
    payload = view_payload(header, batch, bytes_max=bytes_max)
    attributes = header.attributes & ~CODEC_BITS | codec
    return seal(header._replace(attributes=attributes), compress(codec, payload, level=level))
