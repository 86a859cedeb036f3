"""flush.on.ack on a real disk: what cannot be flushed is not acknowledged, whatever acks asks."""

from pathlib import Path

import pytest
from tests.faults.injectors.shim import Shim, compiled, missing_means
from tests.support.batches import batch
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually
from tests.support.wire import RawConnection, WireError
from tests.support.writers import read_log

pytestmark = pytest.mark.skipif(missing_means() is not None, reason=str(missing_means()))

TOPIC = "kept"


@pytest.mark.parametrize("acks", [1, -1])
def test_a_record_that_does_not_reach_the_disk_is_never_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    shim = Shim(tmp_path / "orders")
    monkeypatch.setenv("LD_PRELOAD", str(compiled(tmp_path)))
    monkeypatch.setenv("FAULT_SHIM_ORDERS", str(tmp_path / "orders"))
    with BrokerProcess(tmp_path / "broker", {"flush.on.ack": "true"}) as broker:
        broker.start()
        with RawConnection(broker.port) as connection:
            assert connection.create_topic(TOPIC) == 0
            for number in range(5):
                answer = connection.produce({(TOPIC, 0): batch([b"before"])}, acks=acks)
                assert answer[TOPIC, 0].base_offset == number
            shim.orders.directory = str(broker.data).encode()
            shim.orders.failing_syncs = -1
            with pytest.raises((WireError, OSError)):
                connection.produce({(TOPIC, 0): batch([b"lost"])}, acks=acks)
        assert broker.wait() == 1
        assert "Shutdown broker because" in broker.log
        shim.clear()
        broker.start()
        eventually(lambda: count_of_records(broker.port) >= 5, what="the records acknowledged")
        assert broker.tracebacks() == {}


def count_of_records(port: int) -> int:
    """None, as long as what was found after the crash is not on disk and does not count."""
    try:
        return len(read_log(port, TOPIC, 0))
    except WireError:
        return 0
