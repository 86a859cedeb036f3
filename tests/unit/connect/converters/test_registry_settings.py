"""Which refusals of a registry are about a record's schema, and which about the registry."""

import pytest

from penstock.connect.converters.registry_settings import let_through
from penstock.schemas.errors import DecodeError
from penstock.schemas.registry_client import RegistryRefused, RegistryUnreachable


@pytest.mark.parametrize("status", [404, 409, 422])
def test_a_refused_schema_is_the_records_fault(status: int) -> None:
    let_through(RegistryRefused(status, status * 100, "no"))
    let_through(DecodeError("short"))


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_registry_that_is_broken_is_not(status: int) -> None:
    with pytest.raises(RegistryUnreachable, match="no"):
        let_through(RegistryRefused(status, status * 100, "no"))
