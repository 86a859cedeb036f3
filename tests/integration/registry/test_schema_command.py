"""`penstock schema` against a registry: each action, and schemas from one registry to another."""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess

from penstock.cli.main import main

V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string", "default": ""}]}
BAD = {**V1, "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture(scope="module")
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RegistryProcess]]:
    directory = tmp_path_factory.mktemp("schemas")
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(directory / "broker", settings) as broker:
        broker.start()
        made = [
            RegistryProcess(
                directory / name,
                broker.address,
                {"kafkastore.topic": f"_{name}", "schema.registry.group.id": name},
            )
            for name in ("one", "two")
        ]
        with made[0], made[1]:
            for registry in made:
                registry.start()
            yield made


def run(registry: RegistryProcess, *words: object, code: int = 0) -> str:
    """What the command prints, its errors where it ends with one."""
    printed, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(errors):
        ended = main(["schema", *map(str, words), "--registry", registry.url])
    assert ended == code, errors.getvalue()
    return printed.getvalue() if code == 0 else errors.getvalue()


def test_a_schemas_life(registries: list[RegistryProcess], tmp_path: Path) -> None:
    at = registries[0]
    files = {}
    for name, schema in (("v1", V1), ("v2", V2), ("bad", BAD)):
        files[name] = tmp_path / f"{name}.avsc"
        files[name].write_text(json.dumps(schema))
    subject = "a/b 100%"
    assert run(at, "register", subject, files["v1"]) == "1\n"
    assert run(at, "register", subject, files["v1"]) == "1\n"
    assert run(at, "check", subject, files["v2"]) == "It is compatible.\n"
    refused = run(at, "check", subject, files["bad"], code=1)
    assert refused.startswith(f"It is not compatible with {subject}:\n")
    assert "TYPE_MISMATCH" in refused
    sentence = run(at, "register", subject, files["bad"], code=1)
    assert "incompatible with an earlier schema" in sentence
    assert len(sentence.splitlines()) == 1
    assert '+      "name": "note",' in run(at, "diff", subject, files["v2"]).splitlines()
    assert run(at, "register", subject, files["v2"]) == "2\n"
    assert '+      "name": "note",' in run(at, "diff", subject).splitlines()
    assert run(at, "diff", subject, files["v2"]) == "They are the same.\n"
    assert run(at, "list") == f"{subject}\n"
    assert run(at, "list", subject) == "1\n2\n"
    shown = run(at, "show", subject, "--schema-version", "1")
    assert shown.startswith(f"subject: {subject}\nversion: 1\nid: 1\n")
    assert json.loads(run(at, "show", "--id", "2", "--raw")) == V2
    assert run(at, "delete", subject, "--schema-version", "1") == "1\n"
    assert run(at, "delete", subject) == "2\n"
    assert run(at, "list") == ""
    assert run(at, "list", "--deleted") == f"{subject}\n"
    assert run(at, "show", subject, code=1) == f"Subject '{subject}' not found.\n"
    assert run(at, "delete", subject, "--permanent") == "1\n2\n"


def test_schemas_move_with_their_ids(registries: list[RegistryProcess], tmp_path: Path) -> None:
    source, target = registries
    coin = tmp_path / "coin.avsc"
    coin.write_text(json.dumps({"type": "enum", "name": "Coin", "symbols": ["EUR"]}))
    order = tmp_path / "order.avsc"
    field = {"name": "paid", "type": "Coin"}
    order.write_text(json.dumps({"type": "record", "name": "Order", "fields": [field]}))
    coin_id = run(source, "register", "coin", coin).strip()
    reference = ["--reference", "Coin=coin:1"]
    order_id = run(source, "register", ":.shop:order", order, *reference, code=1)
    assert "No schema reference found" in order_id
    order_id = run(source, "register", "order", order, *reference).strip()
    file = tmp_path / "export.ndjson"
    run(source, "export", file)
    assert run(target, "import", file) == "2 schemas imported.\n"
    for schema_id in (coin_id, order_id):
        there = run(target, "show", "--id", schema_id, "--raw")
        assert there == run(source, "show", "--id", schema_id, "--raw")
    assert run(target, "export").splitlines() == file.read_text().splitlines()
    # A subject that has schemas is left alone, unless it is forced.
    assert "Cannot import" in run(target, "import", file, code=1)
    assert run(target, "import", file, "--force") == "2 schemas imported.\n"
    # Afterwards it takes new ones as ever.
    assert int(run(target, "register", "later", coin)) == int(coin_id)
