"""A proxy without a registry says so to whoever needs one."""

import asyncio

import pytest

from penstock.rest.errors import InvalidSchema
from penstock.rest.payloads.schema_choice import SchemaChoice
from penstock.rest.v2.schemas import Schemas


def test_without_a_registry_formats_with_schemas_are_refused() -> None:
    schemas = Schemas(None)
    with pytest.raises(InvalidSchema, match=r"schema\.registry\.url"):
        asyncio.run(schemas.find(SchemaChoice(topic="t", is_key=False, schema_id=1)))
    with pytest.raises(InvalidSchema, match=r"schema\.registry\.url"):
        schemas.decoder()
