"""penstock dlq with a registry: values shown as documents, corrected as documents."""

import json
import subprocess
from typing import Any

from tests.support.broker import BrokerProcess
from tests.support.processes import python
from tests.support.registry import RegistryProcess
from tests.support.spark_topics import Topic

from penstock.cli.tools.dlq.read import read_topic
from penstock.schemas.dead_letters import Cause, FailureStage
from penstock.schemas.serializers import AvroDeserializer, AvroSerializer, RegistryClient

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}


def dlq(broker: BrokerProcess, *words: object, code: int = 0) -> Any:
    done = subprocess.run(
        [python(), "-m", "penstock.cli.main", "dlq", "--bootstrap-server", broker.address,
         *(str(word) for word in words)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_a_value_is_shown_and_corrected_under_its_schema(
    broker: BrokerProcess, registry: RegistryProcess
) -> None:
    Topic(broker.port, "letters")
    dead = Topic(broker.port, "letters.dead")
    ours = RegistryClient(registry.url)
    value = AvroSerializer(ORDER, registry=ours).serialize("letters", {"id": -1, "note": "a"})
    cause = Cause(
        topic="letters", partition=0, offset=3, stage=FailureStage.TASK_PUT, message="id < 0"
    )
    dead.put([value, b"{}"], headers=cause.headers())
    where = ("--schema-registry", registry.url)
    good, bad = map(
        json.loads, dlq(broker, "show", "letters.dead", "--json", *where).stdout.splitlines()
    )
    assert good["document"] == {"id": -1, "note": {"string": "a"}}
    assert (good["stage"], bad["no document"][:7]) == ("TASK_PUT", "2 bytes")
    place = ("letters.dead", "--partition", 0, "--offset", 0, *where, "--execute")
    wrong = dlq(broker, "edit", *place, "--value-json", '{"id": 1}', code=1)
    assert "lacks the field note" in wrong.stderr
    dlq(broker, "edit", *place, "--value-json", '{"id": 1, "note": null}')
    dlq(broker, "redrive", "letters.dead", "--from-offset", 2, "--execute")
    (record,) = read_topic({"bootstrap.servers": broker.address}, "letters")
    read = AvroDeserializer(registry=ours).deserialize("letters", record.record.value)
    assert read == {"id": 1, "note": None}
