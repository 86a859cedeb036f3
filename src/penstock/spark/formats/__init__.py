"""Values as columns and back: JSON, Avro, Protobuf, CSV and raw, on any frame with such bytes.

    orders = formats.decode(topic, formats.Json("id long, cents long, ordered_at timestamp"))
    formats.encode(totals, formats.Avro(schema), key="shop_id", key_format=formats.Raw("long"))

`decode` replaces the column `value` by a struct (`select("value.*")` spreads it out); what becomes
of a record that cannot be decoded is chosen there. `dead_letter_rows` tells how dead letters are
written exactly once. Schemas by id are looked up in a folder (`SchemaDirectory`) or in a schema
registry (`RegistryClient`).
"""

from penstock.schemas.lookup import SchemaDirectory
from penstock.schemas.registry_client import RegistryClient
from penstock.spark.formats.avro_format import Avro
from penstock.spark.formats.csv_format import Csv
from penstock.spark.formats.dead_letter_rows import (
    DeadLetter,
    dead_letters,
    good,
    with_dead_letters,
)
from penstock.spark.formats.decoding import OnError, decode
from penstock.spark.formats.encoding import encode
from penstock.spark.formats.format import Format
from penstock.spark.formats.json_format import Json, infer_json
from penstock.spark.formats.protobuf_format import Protobuf
from penstock.spark.formats.raw_format import Raw

__all__ = [
    "Avro",
    "Csv",
    "DeadLetter",
    "Format",
    "Json",
    "OnError",
    "Protobuf",
    "Raw",
    "RegistryClient",
    "SchemaDirectory",
    "dead_letters",
    "decode",
    "encode",
    "good",
    "infer_json",
    "with_dead_letters",
]
