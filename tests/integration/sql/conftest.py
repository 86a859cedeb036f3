"""One SQL server for all tests of a module."""

from collections.abc import Iterator

import pytest
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.sql_server import SqlServerProcess

FUNCTIONS = """
from penstock.sql.functions.user.decorators import udf


@udf
def no_threes(v: int) -> int:
    if v == 3:
        raise ValueError("not three")
    return v
"""


@pytest.fixture(scope="module")
def registry(
    shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    """A schema registry for all tests of a module."""
    with RegistryProcess(tmp_path_factory.mktemp("registry"), shared_broker.address) as process:
        process.start()
        yield process


@pytest.fixture(scope="module")
def sql(
    shared_broker: BrokerProcess,
    registry: RegistryProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SqlServerProcess]:
    """A server of the module's own; it must outlive its tests and stop well."""
    folder = tmp_path_factory.mktemp("sql")
    (folder / "functions").mkdir()
    (folder / "functions" / "mine.py").write_text(FUNCTIONS)
    settings = {
        "ksql.schema.registry.url": registry.url,
        "ksql.extension.dir": str(folder / "functions"),
        "ksql.logging.processing.rows.include": "true",
    }
    with SqlServerProcess(folder, shared_broker.address, settings) as server:
        server.start()
        yield server
        assert server.stop() == 0, server.log_end
        assert not server.tracebacks(), server.log_end
