"""Settings of S3's sink and source, by Confluent's names."""

import re
from typing import Any

from penstock.connect.connectors.aws import (
    CREDENTIALS_CONFIG,
    MISSING,
    half_credentials,
    has_boto,
)
from penstock.connect.connectors.objects.kinds import StoreKind
from penstock.connect.connectors.objects.settings import with_error
from penstock.connect.connectors.s3.store import S3Store
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords, WithinRange

_PART_BYTES_MIN = 5 << 20
_URL = re.compile(r"https?://[^/\s]+/?")
_CANNED = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "log-delivery-write",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "aws-exec-read",
)


def _is_url(value: Any) -> str | None:
    if not value or _URL.fullmatch(value):
        return None
    return "Must be http:// or https:// with a host"


def _is_canned(value: Any) -> str | None:
    return None if not value or value in _CANNED else f"Must be one of: {', '.join(_CANNED)}"


def _is_bucket(value: Any) -> str | None:
    if value and re.fullmatch(r"[A-Za-z0-9._-]{3,255}", value):
        return None
    return "Must be the name of a bucket: letters, digits, dots and dashes"


_CONFIG = CREDENTIALS_CONFIG + ConfigDef(
    ConfigEntry(
        "s3.bucket.name",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The bucket.",
        validator=Judged(_is_bucket, "a bucket"),
    ),
    ConfigEntry("s3.region", ConfigType.STRING, "us-west-2", Importance.MEDIUM, "Its region."),
    ConfigEntry(
        "store.url",
        ConfigType.STRING,
        "",
        Importance.LOW,
        "The address of a store that speaks S3's protocol; AWS itself if it is not given.",
        validator=Judged(_is_url, "a URL"),
    ),
    ConfigEntry(
        "s3.path.style.access.enabled",
        ConfigType.BOOLEAN,
        True,
        Importance.LOW,
        "Whether the bucket stands in the path of requests and not in the name of the host.",
    ),
    ConfigEntry(
        "s3.part.retries",
        ConfigType.INT,
        3,
        Importance.MEDIUM,
        "How often a request is tried again before the task waits for retry.backoff.ms.",
        validator=AtLeast(0),
    ),
)
_SINK_CONFIG = ConfigDef(
    ConfigEntry(
        "storage.class",
        ConfigType.CLASS,
        "io.confluent.connect.s3.storage.S3Storage",
        Importance.LOW,
        "The store of the connector; there is one.",
        validator=Judged(
            lambda text: None if (text or "").endswith("S3Storage") else "Must be S3Storage", ""
        ),
    ),
    ConfigEntry(
        "s3.part.size",
        ConfigType.INT,
        26_214_400,
        Importance.HIGH,
        "The bytes of a part; a larger object is sent in parts.",
        validator=AtLeast(_PART_BYTES_MIN),
    ),
    ConfigEntry(
        "s3.compression.type",
        ConfigType.STRING,
        "none",
        Importance.LOW,
        "none or gzip, for JsonFormat and ByteArrayFormat.",
        validator=OneOfWords(("none", "gzip")),
    ),
    ConfigEntry(
        "s3.compression.level",
        ConfigType.INT,
        6,
        Importance.LOW,
        "How hard gzip tries: 0 to 9.",
        validator=WithinRange(0, 9),
    ),
    ConfigEntry(
        "s3.acl.canned",
        ConfigType.STRING,
        None,
        Importance.LOW,
        "The canned ACL of objects.",
        validator=Judged(_is_canned, "a canned ACL"),
    ),
    ConfigEntry(
        "s3.ssea.name",
        ConfigType.STRING,
        "",
        Importance.LOW,
        "How the server encrypts: AES256 or aws:kms.",
        validator=OneOfWords(("", "AES256", "aws:kms")),
    ),
)


def _checked(checked: CheckedConfig) -> CheckedConfig:
    """With the errors of credentials, compression, and a library that is missing."""
    values = {one.entry.name: one.value for one in checked.values}
    if not has_boto():
        checked = with_error(checked, "s3.bucket.name", MISSING)
    half = half_credentials(values)
    if half is not None:
        checked = with_error(checked, "aws.access.key.id", half)
    form = (values.get("format.class") or "").rpartition(".")[2]
    if values.get("s3.compression.type") == "gzip" and form in ("AvroFormat", "ParquetFormat"):
        sentence = f"{form} compresses by its own codec: use avro.codec or parquet.codec."
        checked = with_error(checked, "s3.compression.type", sentence)
    return checked


S3 = StoreKind(
    name="s3",
    config=_CONFIG,
    sink_config=_SINK_CONFIG,
    place="s3.bucket.name",
    opened=S3Store,
    checked=_checked,
)
