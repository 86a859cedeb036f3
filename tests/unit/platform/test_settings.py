"""One file for all processes: what each gets of it, and which mistakes are told."""

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.platform.settings import (
    DEFAULT_DIRECTORY,
    LIGHT,
    Door,
    PlatformSettings,
    directory_in,
    platform_settings,
)

HERE = Path("/somewhere")


def settings(**given: str) -> PlatformSettings:
    """Names with a double underscore where the setting has a dot."""
    return platform_settings({name.replace("__", "."): text for name, text in given.items()}, HERE)


def addresses(found: PlatformSettings) -> dict[str, str]:
    return {door.service: door.address for door in found.doors}


def test_without_a_file_everything_is_on_its_usual_port_of_the_loopback() -> None:
    assert addresses(settings()) == {
        "broker": "127.0.0.1:9092",
        "registry": "http://127.0.0.1:8081",
        "rest": "http://127.0.0.1:8082",
    }


def test_the_broker_starts_first_and_the_light_services_share_a_process() -> None:
    broker, services = settings().processes
    assert (broker.name, broker.command) == ("broker", ("server",))
    assert (services.name, services.command) == ("services", ("services",))
    assert {door.service for door in services.doors} == {k.name for k in LIGHT if k.is_usual}


def test_a_chosen_sql_server_finds_the_broker_the_registry_and_a_place_for_its_state() -> None:
    found = settings(services="broker,registry,sql")
    assert addresses(found)["sql"] == "http://127.0.0.1:8088"
    assert found.services["sql"] == {
        "ksql.schema.registry.url": "http://127.0.0.1:8081",
        "ksql.streams.state.dir": str(HERE / "sql"),
        "bootstrap.servers": "127.0.0.1:9092",
    }


def test_a_chosen_connect_worker_has_its_own_process_and_all_that_it_must_be_told() -> None:
    found = settings(services="broker,connect,sql", connect__group__id="movers")
    _broker, services, worker = found.processes
    assert (worker.name, worker.command) == ("connect", ("connect", "distributed"))
    assert [door.address for door in worker.doors] == ["http://127.0.0.1:8083"]
    assert worker.properties["group.id"] == "movers"
    assert worker.properties["config.storage.topic"] == "connect-configs"
    assert worker.properties["bootstrap.servers"] == "127.0.0.1:9092"
    assert services.properties["sql.ksql.connect.url"] == "http://127.0.0.1:8083"
    assert {door.service for door in services.doors} == {"sql"}
    assert found.warnings == ()


def test_a_wrong_setting_of_the_worker_is_named_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match=r"connect\..*exactly\.once\.source\.support"):
        settings(services="broker,connect", connect__exactly__once__source__support="maybe")


def test_each_process_gets_its_own_settings_and_no_others() -> None:
    found = settings(
        num__partitions="7",
        registry__schema__compatibility__level="FULL",
        services="broker,registry",
    )
    broker, services = (process.properties for process in found.processes)
    assert broker == {"num.partitions": "7", "log.dirs": str(HERE / "data")}
    assert services == {
        "services": "registry",
        "registry.schema.compatibility.level": "FULL",
        "registry.kafkastore.bootstrap.servers": "127.0.0.1:9092",
    }
    assert found.warnings == ()


def test_what_the_services_get_reads_back_as_the_same() -> None:
    found = settings(
        listeners="PLAINTEXT://127.0.0.1:19092", rest__listeners="http://127.0.0.1:1234"
    )
    again = platform_settings(found.services_file, HERE)
    assert (again.services, again.brokers) == (found.services, ())


@pytest.mark.parametrize(
    ("listeners", "address"),
    [
        ("PLAINTEXT://0.0.0.0:19092", "127.0.0.1:19092"),
        ("PLAINTEXT://:19092", "127.0.0.1:19092"),
        ("PLAINTEXT://localhost:19092", "localhost:19092"),
        ("PLAINTEXT://[::1]:19092", "[::1]:19092"),
    ],
)
def test_services_come_to_the_broker_by_an_address_that_leads_there(
    listeners: str, address: str
) -> None:
    found = settings(listeners=listeners, advertised__listeners="PLAINTEXT://example.org:9092")
    assert found.services["registry"]["kafkastore.bootstrap.servers"] == address
    assert found.services["rest"]["bootstrap.servers"] == address


def test_the_rest_proxy_is_told_where_the_registry_is_unless_somebody_said_so() -> None:
    assert settings().services["rest"]["schema.registry.url"] == "http://127.0.0.1:8081"
    given = {"rest.schema.registry.url": "http://elsewhere:1"}
    found = platform_settings(given, HERE).services["rest"]
    assert found["schema.registry.url"] == "http://elsewhere:1"
    assert "schema.registry.url" not in settings(services="broker,rest").services["rest"]


def test_data_goes_below_the_directory_unless_the_broker_is_told_otherwise() -> None:
    assert settings().brokers[0]["log.dirs"] == "/somewhere/data"
    assert settings(log__dir="/else").brokers == ({"log.dir": "/else"},)


def test_services_alone_need_to_be_told_where_the_brokers_are() -> None:
    with pytest.raises(ConfigError, match=r"registry\.kafkastore\.bootstrap\.servers is missing"):
        settings(services="registry")
    found = settings(services="registry", registry__kafkastore__bootstrap__servers="there:1")
    assert [process.name for process in found.processes] == ["services"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"services": "broker,streams"}, "services has streams: write some of broker, registry"),
        ({"services": " , "}, "services is empty"),
        ({"num.partitions": "many"}, "num.partitions"),
        ({"registry.listeners": "ftp://x:1"}, "registry.listeners has ftp://x:1"),
        ({"registry.schema.compatibility.level": "SOME"}, "registry.schema.compatibility.level"),
        ({"rest.streams.max": "0"}, "rest.streams.max=0 is less than 1"),
        ({"rest.listeners": "http://127.0.0.1:0"}, "rest.listeners asks for any free port"),
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, "listeners asks for any free port"),
        (
            {"rest.listeners": "http://127.0.0.1:8081"},
            "registry.listeners and rest.listeners both have port 8081",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:8081"},
            "listeners and registry.listeners both have port 8081",
        ),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_setting(
    given: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError) as told:
        platform_settings(given, HERE)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_what_nobody_reads_is_told() -> None:
    found = settings(
        nonsense="1", registry__nonsense="2", rest__streams__max="5", services="broker,registry"
    )
    told = " ".join(found.warnings)
    assert "nonsense" in found.warnings[0]
    assert "registry.nonsense" in told
    assert "rest.streams.max does nothing: services has no rest" in told


def test_the_directory_is_the_command_lines_or_the_files_or_the_usual_one() -> None:
    given = {"directory": "of-the-file"}
    assert directory_in(given, "of-the-command") == Path("of-the-command")
    assert directory_in(given) == Path("of-the-file")
    assert directory_in({}) == Path(DEFAULT_DIRECTORY)


def test_a_door_on_all_interfaces_is_reached_through_the_loopback() -> None:
    door = Door(service="rest", setting="", protocol="http", host="::", port=8082)
    assert door.address == "http://[::1]:8082"


def test_several_brokers_are_processes_of_their_own_that_services_know() -> None:
    found = platform_settings({"listeners": "PLAINTEXT://127.0.0.1:19092", "processes": "3"}, HERE)
    names = [process.name for process in found.processes]
    assert names == ["broker-0", "broker-1", "broker-2", "services"]
    doors = [door.address for process in found.processes[:3] for door in process.doors]
    assert doors == ["127.0.0.1:19092", "127.0.0.1:19093", "127.0.0.1:19094"]
    assert found.services["registry"]["kafkastore.bootstrap.servers"] == ",".join(doors)


def test_a_row_of_ports_may_not_run_into_a_service() -> None:
    given = {"listeners": "PLAINTEXT://127.0.0.1:8080", "processes": "2"}
    with pytest.raises(ConfigError, match="both have port 8081"):
        platform_settings(given, HERE)
