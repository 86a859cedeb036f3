"""CoAP connectors against a device of aiocoap's own server."""

import pytest
from tests.support.coap_device import POISON, coap_device
from tests.support.processes import HOST, free_port

from penstock.connect.connectors.coap.sink import CoapSinkConnector
from penstock.connect.connectors.coap.source import CoapSourceConnector
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.testing import SinkRun, SourceRun, refused_settings

BYTES = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}


def test_an_observed_resource_tells_its_changes_and_another_is_asked() -> None:
    with coap_device() as device:
        config = {
            "coap.uri": f"{device.uri}/lamp,{device.uri}/meter",
            "kafka.topic": "t",
            "coap.refresh.interval.ms": "100",
        }
        with SourceRun(CoapSourceConnector, config, converters=BYTES) as run:

            def states() -> list[str]:
                pairs = zip(run.keys("t"), run.values("t"), strict=True)
                return [value for key, value in pairs if key == f"{device.uri}/lamp"]

            run.run_until(lambda: states() == ["off"])
            device.switch(b"on")
            run.run_until(lambda: states()[-1] == "on")
            device.switch(b"off")
            run.run_until(lambda: states()[-1] == "off")
            meter = [value for value in run.values("t") if value.isdigit()]
            run.run_until(lambda: len([v for v in run.values("t") if v.isdigit()]) > len(meter))
            assert states() == ["off", "on", "off"]
            assert run.topics["t"][0].headers is not None


def test_a_device_that_comes_back_is_observed_again() -> None:
    port = free_port()
    config = {
        "coap.uri": f"coap://{HOST}:{port}/lamp",
        "kafka.topic": "t",
        "coap.refresh.interval.ms": "50",
    }
    with SourceRun(CoapSourceConnector, config, converters=BYTES) as run:
        with coap_device(port):
            run.run_until(lambda: run.values("t") == ["off"])
        run.poll()
        with coap_device(port) as device:
            device.switch(b"on")
            run.run_until(lambda: run.values("t")[-1:] == ["on"])


def test_a_device_that_is_gone_for_too_long_ends_the_task() -> None:
    config = {
        "coap.uri": f"coap://{HOST}:{free_port()}/lamp",
        "kafka.topic": "t",
        "coap.timeout.ms": "100",
        "coap.refresh.interval.ms": "10",
    }
    with (
        SourceRun(CoapSourceConnector, config) as run,
        pytest.raises(ConnectError, match="out of reach"),
    ):
        run.run_until(lambda: False)


def test_records_are_put_and_what_a_device_refuses_is_put_aside() -> None:
    with coap_device() as device:
        config = {"coap.uri": f"{device.uri}/${{key}}", "coap.content.format": "0"}
        with SinkRun(CoapSinkConnector, config | {"errors.tolerance": "all"}) as run:
            for value, key in (
                (b"on", b"lamp"),
                (POISON, b"lamp"),
                (b"x", b"no"),
                (b"off", b"lamp"),
            ):
                run.produce("t", value, key=key)
            run.deliver()
            run.commit()
            assert run.committed == {("t", 0): 4}
            assert [one.offset for one, _ in run.dead] == [1, 2]
        assert device.lamp.puts == [b"on", b"off"]
        with SinkRun(CoapSinkConnector, config) as run:
            run.produce("t", POISON, key=b"lamp")
            with pytest.raises(DataError, match=r"t-0@0.*no thanks"):
                run.deliver()


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = {"coap.uri": "http://h", "coap.method": "GET", "coap.content.format": "-1"}
    assert sorted(refused_settings(CoapSinkConnector, wrong)) == [
        *("coap.content.format", "coap.method", "coap.uri"),
    ]
    assert sorted(refused_settings(CoapSourceConnector, {"coap.uri": "coap://h,udp://h"})) == [
        *("coap.uri", "kafka.topic"),
    ]
