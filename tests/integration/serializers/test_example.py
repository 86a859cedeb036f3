"""The example in examples/schemas, run as its page says."""

import subprocess

from tests.integration.serializers.confluent import SchemaRegistryClient
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT, python
from tests.support.registry import RegistryProcess


def test_orders_are_written_and_read(broker: BrokerProcess, registry: RegistryProcess) -> None:
    words = ["--bootstrap-server", broker.address, "--schema-registry", registry.url]
    done = subprocess.run(
        [python(), str(ROOT / "examples" / "schemas" / "orders.py"), *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert "Order(order_id=2, customer='ben', cents=300, note='as a present')" in done.stdout
    client = SchemaRegistryClient({"url": registry.url})
    assert client.get_versions("orders.avro-value") == [1]
