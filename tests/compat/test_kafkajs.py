"""KafkaJS against the broker; it knows no flexible versions."""

import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.samples import CODECS, samples, stored_codec

PROGRAM = Path(__file__).parent / "node" / "round_trip.js"


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_by_offset_and_by_time_in_every_compression(
    server: ServerProcess, codec: str
) -> None:
    modules = needs("kafkajs") / "node_modules"
    topic, sent = f"kafkajs-{codec}", [asdict(sample) for sample in samples()]
    done = subprocess.run(
        ["node", str(PROGRAM), server.address, topic, codec, json.dumps(sent)],
        env={**os.environ, "NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    expected = [{**r, "offset": i, "origin": "compat"} for i, r in enumerate(sent)]
    assert result["read"] == expected
    assert result["tail"] == expected[25:]
    assert (result["end"], result["timed"]) == ("40", "30")
    assert stored_codec(server.port, topic) == codec
